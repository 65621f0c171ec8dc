// Checksums of files: that they are what `gnnperf export` wrote.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace gnnperf {

// CRC-32 as zip files and zlib have it.
uint32_t crc32(const void* data, uint64_t size);

// Throws Error where bytes do not have the checksum that was written with them. what: names them.
void check_crc32(const std::string& what, const void* data, uint64_t size, uint32_t expected);

// Throws Error where a part of an archive of torch is not what its checksum says; torch itself loads such a one.
// inflated: the content of a part that is compressed, by its name.
void check_archive(const std::string& path, const std::function<std::string(const std::string&)>& inflated);

}  // namespace gnnperf
