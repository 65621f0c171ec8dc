#include "gnnperf/workload.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace gnnperf {

namespace {

using Loops = std::vector<int64_t>;

struct Product {
  double batch, m, n, k;
  bool transposed;
};

std::string word(const Json& features, const char* name, const char* otherwise) {
  auto found = features.find(name);
  return found == features.end() ? otherwise : found->get<std::string>();
}

// The relations of a graph that the numbers are read from.
class View {
 public:
  View(const Registry& registry, const Graph& graph) : registry_(registry), graph_(graph) {
    std::map<int64_t, int64_t> parent;
    for (const Edge& edge : graph.edges) {
      const std::string& relation = registry.relations[edge.relation];
      if (relation == "contains") {
        parent[edge.target] = edge.source;
      } else if (relation == "indexes" && word(edge.features, "subscript", "") != "invariant") {
        moved_by[edge.target].insert(edge.source);
        if (number(edge.features, "stride_elements") == 1) unit_stride_.insert({edge.source, edge.target});
      } else if (relation == "reads" && kind(edge.source) == "access") {
        inputs_[edge.target].push_back(edge.source);
      } else if (relation == "reads") {
        buffer_of[edge.target] = edge.source;
      } else if (relation == "writes" && kind(edge.target) == "buffer") {
        buffer_of[edge.source] = edge.target;
      }
    }
    around.resize(graph.nodes.size());
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      for (auto at = parent.find(int64_t(i)); at != parent.end() && around[i].size() <= graph.nodes.size();
           at = parent.find(at->second))
        around[i].push_back(at->second);
  }

  const std::string& kind(int64_t node) const { return registry_.node_kinds[graph_.nodes[node].kind]; }
  const Json& features(int64_t node) const { return graph_.nodes[node].features; }
  bool reduces(int64_t loop) const { return word(features(loop), "loop_kind", "") == "reduction"; }

  // Product of extents; of an unknown one, 1.
  double extent(const Loops& loops) const {
    double product = 1.0;
    for (int64_t loop : loops) {
      double extent = number(features(loop), "extent");
      product *= extent == 0.0 ? 1.0 : extent;
    }
    return product;
  }

  Loops choose(const Loops& loops, bool reducing) const {
    Loops chosen;
    for (int64_t loop : loops)
      if (reduces(loop) == reducing) chosen.push_back(loop);
    return chosen;
  }

  // Distinct bytes of memory that accesses of these kinds touch; equal ones of a buffer count once.
  double traffic(const std::set<std::string>& kinds) const {
    std::map<int64_t, double> bytes;
    for (const auto& [access, buffer] : buffer_of)
      if (kinds.count(word(features(access), "access_kind", "")) && word(features(buffer), "scope", "") == "global")
        bytes[buffer] = std::max(bytes[buffer], number(features(access), "footprint_bytes"));
    double total = 0.0;
    for (const auto& [buffer, size] : bytes) total += size;
    return total;
  }

  // Where a reduction multiplies two operands with reuse of both.
  std::optional<Product> product(int64_t compute) const {
    const Json& node = features(compute);
    Loops operands;
    if (auto found = inputs_.find(compute); found != inputs_.end()) operands = found->second;
    auto operations = node.find("operations");
    // A count of zero is as good as none.
    const bool multiplies = operations != node.end() && number(*operations, "mul") != 0.0;
    if (word(node, "reduction", "none") != "add" || !multiplies || operands.size() != 2) return std::nullopt;
    const std::set<int64_t> first = moved(operands[0]), second = moved(operands[1]);
    Loops m, n, k, batch;
    for (int64_t loop : around[compute]) {
      const bool in_first = first.count(loop) > 0, in_second = second.count(loop) > 0;
      if (reduces(loop)) {
        if (in_first || in_second) k.push_back(loop);
      } else if (in_first && in_second) {
        batch.push_back(loop);
      } else if (in_first) {
        m.push_back(loop);
      } else if (in_second) {
        n.push_back(loop);
      }
    }
    if (m.empty() || n.empty() || k.empty()) return std::nullopt;
    auto along = [&](int64_t operand) {
      return std::any_of(k.begin(), k.end(), [&](int64_t loop) { return unit_stride_.count({loop, operand}) > 0; });
    };
    return Product{extent(batch), extent(m), extent(n), extent(k), along(operands[0]) && along(operands[1])};
  }

  // How often the largest input is gone over: loops that step through it on their own.
  double passes() const {
    double largest = 0.0;
    Loops reads;
    for (const auto& [access, buffer] : buffer_of)
      if (word(features(access), "access_kind", "") == "read") {
        reads.push_back(access);
        largest = std::max(largest, number(features(access), "footprint_bytes"));
      }
    std::set<int64_t> steps;
    for (int64_t access : reads) {
      const std::set<int64_t> loops = moved(access);
      if (number(features(access), "footprint_bytes") != largest || loops.empty()) continue;
      steps.insert(*std::max_element(loops.begin(), loops.end(), [&](int64_t a, int64_t b) {
        return number(features(a), "depth") < number(features(b), "depth");
      }));
    }
    return std::max<double>(1.0, double(steps.size()));
  }

  std::vector<Loops> around;  // enclosing loops of each node, innermost first
  std::map<int64_t, std::set<int64_t>> moved_by;
  std::map<int64_t, int64_t> buffer_of;

 private:
  std::set<int64_t> moved(int64_t access) const {
    auto found = moved_by.find(access);
    return found == moved_by.end() ? std::set<int64_t>() : found->second;
  }

  const Registry& registry_;
  const Graph& graph_;
  std::set<std::pair<int64_t, int64_t>> unit_stride_;
  std::map<int64_t, Loops> inputs_;
};

}  // namespace

Workload workload_of(const Registry& registry, const Graph& graph, const std::string& family) {
  const View view(registry, graph);
  Workload result;
  result.kind = "map";
  result.family = family;
  result.flops = number(graph.values, "total_flops");
  result.read_bytes = view.traffic({"read"});
  result.written_bytes = view.traffic({"write", "reduction"});
  Loops computes, reductions;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (view.kind(int64_t(i)) == "compute") {
      computes.push_back(int64_t(i));
      if (word(graph.nodes[i].features, "reduction", "none") != "none") reductions.push_back(int64_t(i));
    }
  for (int64_t compute : reductions)
    if (auto product = view.product(compute)) {
      result.kind = "contraction";
      result.batch = product->batch, result.m = product->m, result.n = product->n, result.k = product->k;
      result.transposed = product->transposed;
      return result;
    }
  if (!reductions.empty()) {
    result.kind = "rows";
    result.rows = result.columns = -std::numeric_limits<double>::infinity();
    for (int64_t compute : reductions) {
      result.columns = std::max(result.columns, view.extent(view.choose(view.around[compute], true)));
      result.rows = std::max(result.rows, view.extent(view.choose(view.around[compute], false)));
    }
    result.passes = view.passes();
    return result;
  }
  double instances = computes.empty() ? 1.0 : number(view.features(computes[0]), "instances");
  for (int64_t compute : computes) instances = std::max(instances, number(view.features(compute), "instances"));
  result.rows = instances;
  return result;
}

std::string family_of(const Workload& workload, const std::vector<std::string>& families) {
  if (workload.kind == "contraction" && (workload.family == "matmul" || workload.family.empty()))
    return workload.transposed && workload.batch == 1 ? "linear" : "bmm";
  if (std::find(families.begin(), families.end(), workload.family) != families.end()) return workload.family;
  return workload.kind == "map" ? "elementwise" : "";
}

}  // namespace gnnperf
