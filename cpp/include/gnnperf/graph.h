// Program graphs: read from JSON, checked against the field registry, encoded as arrays for the network.
//
// Nothing about fields is written down here: kinds, relations, fields and their columns come from the
// registry in the model's metadata, so that graphs are encoded as the model was trained.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "gnnperf/json.h"

namespace gnnperf {

struct Node {
  int64_t kind;   // index into Registry::node_kinds
  Json features;  // what the document says; defaults may be left out
};

struct Edge {
  int64_t source, target;
  int64_t relation;  // index into Registry::relations
  Json features;
};

// A graph that was checked: known kinds, fields and values, edges that join what they may join.
struct Graph {
  std::vector<Node> nodes;
  std::vector<Edge> edges;  // ordered by source, target and relation
  Json values;
};

// n nodes, e edges (each with its reverse), row-major. Numbers are sign(x)*log2(1+|x|).
struct EncodedGraph {
  std::vector<int64_t> node_kind;       // [n]
  std::vector<float> node_features;     // [n, node_width]
  std::vector<int64_t> edge_source;     // [e]
  std::vector<int64_t> edge_target;     // [e]
  std::vector<int64_t> edge_kind;       // [e]
  std::vector<float> edge_features;     // [e, edge_width]
  std::vector<float> graph_features;    // [graph_width]
};

enum class FieldType { number, flag, category, histogram };

struct Field {
  FieldType type;
  size_t offset, width;
  bool required;
  std::unordered_map<std::string, int64_t> choices;  // word -> column after offset; -1: encoded as zeros
};

using Fields = std::unordered_map<std::string, Field>;

// The field registry of a model's metadata.
class Registry {
 public:
  Registry() = default;
  // Throws Error where the document is no registry.
  explicit Registry(const Json& document);

  // Read and check a program graph (the JSON of ProgramGraph.to_json). Throws Error.
  Graph read(const Json& document) const;

  EncodedGraph encode(const Graph& graph) const;

  // Index of a node kind or relation; Error where there is none of this name.
  int64_t node_kind(const std::string& name) const;
  int64_t relation(const std::string& name) const;

  size_t node_width = 0, edge_width = 0, graph_width = 0;
  int64_t schema_version = 0;
  std::vector<std::string> node_kinds, relations;

 private:
  struct Level {
    std::vector<Fields> of_kind;  // fields that each kind may carry
    size_t width = 0;
  };
  Level level(const Json& fields, const std::vector<std::string>& kinds) const;
  void check(const Json& features, const Fields& known, const std::string& where) const;

  Level node_, edge_, graph_;
  std::vector<std::vector<bool>> joins_;  // [relation][source kind * kinds + target kind]
};

// A number of a node or edge, `otherwise` where it is left out.
double number(const Json& features, const char* name, double otherwise = 0.0);

}  // namespace gnnperf
