// What a program asks of a GPU, in the few numbers that the runtime model reads (gnnperf/graph/workload.py).
#pragma once

#include <string>

#include "gnnperf/graph.h"

namespace gnnperf {

struct Workload {
  std::string kind;    // contraction, rows or map
  std::string family;  // "" of a program of unknown origin
  double flops = 0, read_bytes = 0, written_bytes = 0;
  double batch = 1, m = 1, n = 1, k = 1;
  bool transposed = false;
  double rows = 1, columns = 1, passes = 1;
};

// Read the workload of a graph.
Workload workload_of(const Registry& registry, const Graph& graph, const std::string& family);

// The measured family that a workload belongs to; "" where it is none of those.
std::string family_of(const Workload& workload, const std::vector<std::string>& families);

}  // namespace gnnperf
