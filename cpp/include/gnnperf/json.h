// JSON documents, read from files that nobody vouches for.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace gnnperf {

using Json = nlohmann::json;

// The document in a file. Throws Error where it cannot be read or is no JSON.
Json read_json(const std::string& path);

// What a value is called in messages, cut short.
std::string shown(const Json& value);

// member(object, "a", where): the member, or an Error that names `where` if it is not there.
const Json& member(const Json& object, const char* name, const std::string& where);

}  // namespace gnnperf
