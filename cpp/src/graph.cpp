#include "gnnperf/graph.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>

#include "gnnperf/error.h"

namespace gnnperf {

namespace {

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  try {
    (void)Json(text).dump();  // throws where it is no UTF-8
  } catch (const Json::exception&) {
    for (char& c : text)
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return text;
}

}  // namespace

Error::Error(const std::string& text) : std::runtime_error(one_line(text)) {}

Json read_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("cannot read " + path + "; name a file that exists");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) throw Error("cannot read " + path + "; name a file");
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw Error(path + ": expected JSON, got something else: " + error.what());
  }
}

std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

const Json& member(const Json& object, const char* name, const std::string& where) {
  if (!object.is_object()) throw Error(where + ": expected an object with " + name + ", got " + shown(object));
  auto found = object.find(name);
  if (found == object.end()) throw Error(where + ": expected " + name + ", got none");
  return *found;
}

namespace {

// Quantities have 12 significant digits, as in Python: equal ones stay equal however they were computed.
double canonical(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  double number = value.get<double>();
  if (!value.is_number_float()) return number;
  char text[40];
  std::snprintf(text, sizeof text, "%.12g", number);
  return std::strtod(text, nullptr);
}

float signed_log2(double x) { return static_cast<float>(std::copysign(std::log2(1.0 + std::abs(x)), x)); }

int64_t index_of(const std::vector<std::string>& names, const std::string& name, const char* what) {
  auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return found - names.begin();
  std::string known;
  for (const auto& each : names) known += (known.empty() ? "" : ", ") + each;
  throw Error(std::string("expected a ") + what + " out of " + known + ", got '" + name.substr(0, 60) + "'");
}

Field field_of(const Json& document) {
  static const std::map<std::string, FieldType> types = {{"number", FieldType::number},
                                                         {"flag", FieldType::flag},
                                                         {"category", FieldType::category},
                                                         {"histogram", FieldType::histogram}};
  Field field{types.at(document.at("type")), document.at("offset"), document.at("width"),
              document.at("required"), {}};
  for (const auto& [word, column] : document.at("choices").items()) {
    int64_t place = column.is_null() ? -1 : column.get<int64_t>();
    if (place < -1 || place >= static_cast<int64_t>(field.width))
      throw Error("a choice lies outside of its field");
    field.choices[word] = place;
  }
  if (field.choices.empty() && field.width != 1) throw Error("a field without choices is not one column wide");
  return field;
}

// Write one feature into its columns of a row.
void put(float* row, const Field& field, const Json& value) {
  switch (field.type) {
    case FieldType::number:
    case FieldType::flag:
      row[field.offset] = signed_log2(canonical(value));
      return;
    case FieldType::category:
      if (int64_t column = field.choices.at(value.get_ref<const std::string&>()); column >= 0)
        row[field.offset + column] = 1.0f;
      return;
    case FieldType::histogram: {
      std::map<int64_t, double> totals;
      for (const auto& [word, count] : value.items())
        totals[field.choices.at(word)] += std::trunc(canonical(count));
      for (const auto& [column, total] : totals)
        if (column >= 0) row[field.offset + column] = signed_log2(total);
    }
  }
}

void put_all(float* row, const Fields& known, const Json& features) {
  for (const auto& [name, value] : features.items()) put(row, known.at(name), value);
}

bool fits(const Field& field, const Json& value) {
  auto finite = [](const Json& v) { return v.is_boolean() || (v.is_number() && std::isfinite(v.get<double>())); };
  switch (field.type) {
    case FieldType::number:
      return finite(value);
    case FieldType::flag:
      return value.is_boolean();
    case FieldType::category:
      return value.is_string() && field.choices.count(value.get_ref<const std::string&>()) > 0;
    case FieldType::histogram:
      if (!value.is_object()) return false;
      for (const auto& [word, count] : value.items())
        if (!field.choices.count(word) || !finite(count)) return false;
      return true;
  }
  return false;
}

int64_t end_of(const Json& edge, const char* name, size_t nodes, const std::string& where) {
  const Json& value = member(edge, name, where);
  int64_t position = -1;
  if (value.is_number_unsigned() && value.get<uint64_t>() < nodes) position = value.get<int64_t>();
  if (position < 0)
    throw Error(where + ": expected " + name + " to be a node below " + std::to_string(nodes) + ", got " +
                shown(value));
  return position;
}

const std::string& text_of(const Json& object, const char* name, const std::string& where) {
  const Json& value = member(object, name, where);
  if (!value.is_string()) throw Error(where + ": expected " + name + " to be a name, got " + shown(value));
  return value.get_ref<const std::string&>();
}

}  // namespace

double number(const Json& features, const char* name, double otherwise) {
  auto found = features.find(name);
  return found == features.end() ? otherwise : canonical(*found);
}

Registry::Registry(const Json& document) try {
  schema_version = document.at("schema_version");
  node_kinds = document.at("node_kinds").get<std::vector<std::string>>();
  for (const auto& relation : document.at("relations")) relations.push_back(relation.at("name"));
  for (const auto& relation : document.at("relations")) {
    std::vector<bool> allowed(node_kinds.size() * node_kinds.size(), false);
    for (const auto& ends : relation.at("joins"))
      allowed.at(node_kind(ends.at(0)) * node_kinds.size() + node_kind(ends.at(1))) = true;
    joins_.push_back(allowed);
  }
  const Json& fields = document.at("fields");
  node_ = level(fields.at("node"), node_kinds);
  edge_ = level(fields.at("edge"), relations);
  graph_ = level(fields.at("graph"), {""});
  node_width = node_.width, edge_width = edge_.width, graph_width = graph_.width;
} catch (const std::exception& error) {
  throw Error(std::string("the model's field registry is damaged (") + error.what() + "); export the model again");
}

Registry::Level Registry::level(const Json& fields, const std::vector<std::string>& kinds) const {
  Level result;
  result.of_kind.resize(kinds.size());
  for (const auto& described : fields) {
    Field field = field_of(described);
    if (field.offset != result.width) throw Error("fields do not follow one another");
    result.width += field.width;
    const auto carriers = described.at("kinds").get<std::vector<std::string>>();
    for (size_t kind = 0; kind < kinds.size(); ++kind)
      if (carriers.empty() || std::find(carriers.begin(), carriers.end(), kinds[kind]) != carriers.end())
        result.of_kind[kind].emplace(described.at("name"), field);
  }
  return result;
}

int64_t Registry::node_kind(const std::string& name) const { return index_of(node_kinds, name, "node kind"); }

int64_t Registry::relation(const std::string& name) const { return index_of(relations, name, "relation"); }

void Registry::check(const Json& features, const Fields& known, const std::string& where) const {
  if (!features.is_object()) throw Error(where + ": expected features to be an object, got " + shown(features));
  for (const auto& [name, value] : features.items()) {
    auto field = known.find(name);
    if (field == known.end()) throw Error(where + ": got the field '" + name.substr(0, 60) + "', which it cannot have");
    if (!fits(field->second, value))
      throw Error(where + ": expected another kind of value for the field '" + name + "', got " + shown(value));
  }
  for (const auto& [name, field] : known)
    if (field.required && !features.contains(name))
      throw Error(where + ": expected the field '" + name + "', got none");
}

Graph Registry::read(const Json& document) const {
  const bool has_version = document.is_object() && document.contains("schema_version");
  const Json* version = has_version ? &document["schema_version"] : nullptr;
  if (!version || !version->is_number_integer() || *version != schema_version)
    throw Error("expected a program graph of schema version " + std::to_string(schema_version) + ", got " +
                (version ? shown(*version) : "none"));
  Graph graph;
  const Json &nodes = member(document, "nodes", "graph"), &edges = member(document, "edges", "graph");
  if (!nodes.is_array() || !edges.is_array()) throw Error("expected nodes and edges to be arrays");
  for (const auto& node : nodes) {
    std::string where = "node " + std::to_string(graph.nodes.size());
    int64_t kind = node_kind(text_of(node, "kind", where));
    const Json& features = member(node, "features", where);
    check(features, node_.of_kind[kind], where);
    graph.nodes.push_back({kind, features});
  }
  for (const auto& edge : edges) {
    std::string where = "edge " + std::to_string(graph.edges.size());
    int64_t kind = relation(text_of(edge, "kind", where));
    int64_t source = end_of(edge, "source", graph.nodes.size(), where);
    int64_t target = end_of(edge, "target", graph.nodes.size(), where);
    const Json& features = member(edge, "features", where);
    check(features, edge_.of_kind[kind], where);
    if (!joins_[kind][graph.nodes[source].kind * node_kinds.size() + graph.nodes[target].kind])
      throw Error(where + ": " + relations[kind] + " may not join " + node_kinds[graph.nodes[source].kind] + " and " +
                  node_kinds[graph.nodes[target].kind]);
    graph.edges.push_back({source, target, kind, features});
  }
  graph.values = member(document, "values", "graph");
  check(graph.values, graph_.of_kind[0], "graph");
  std::stable_sort(graph.edges.begin(), graph.edges.end(), [&](const Edge& a, const Edge& b) {
    return std::tie(a.source, a.target, relations[a.relation]) < std::tie(b.source, b.target, relations[b.relation]);
  });
  return graph;
}

EncodedGraph Registry::encode(const Graph& graph) const {
  const size_t n = graph.nodes.size(), e = graph.edges.size();
  EncodedGraph out;
  out.node_features.assign(n * node_width, 0.0f);
  out.edge_features.assign(2 * e * edge_width, 0.0f);
  out.graph_features.assign(graph_width, 0.0f);
  for (size_t i = 0; i < n; ++i) {
    out.node_kind.push_back(graph.nodes[i].kind);
    put_all(out.node_features.data() + i * node_width, node_.of_kind[graph.nodes[i].kind], graph.nodes[i].features);
  }
  // Every edge, then every edge backwards with the same features.
  for (int backwards = 0; backwards < 2; ++backwards)
    for (size_t i = 0; i < e; ++i) {
      const Edge& edge = graph.edges[i];
      out.edge_source.push_back(backwards ? edge.target : edge.source);
      out.edge_target.push_back(backwards ? edge.source : edge.target);
      out.edge_kind.push_back(edge.relation + (backwards ? static_cast<int64_t>(relations.size()) : 0));
      put_all(out.edge_features.data() + (backwards * e + i) * edge_width, edge_.of_kind[edge.relation], edge.features);
    }
  put_all(out.graph_features.data(), graph_.of_kind[0], graph.values);
  return out;
}

}  // namespace gnnperf
