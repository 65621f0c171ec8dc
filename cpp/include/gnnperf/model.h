// A model that `gnnperf export` wrote: TorchScript (.pt) or AOTInductor (.pt2), with its metadata checked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gnnperf/graph.h"
#include "gnnperf/workload.h"

namespace gnnperf {

// What is said of a workload on a GPU. Times in seconds.
struct Prediction {
  double runtime_s, roofline_s;
  std::vector<double> lower_s, upper_s;  // of the intervals at Model::metadata()["levels"]
  std::string objection;                 // why nothing is said; the rest means nothing then
};

struct Backend;  // TorchScript or AOTInductor

class Model {
 public:
  // Load and check a model; threads: of the network. Throws Error: no model, or made for something else
  // (got, expected).
  explicit Model(const std::string& path, int threads = 1);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Json& metadata() const { return metadata_; }
  const Registry& registry() const { return registry_; }
  bool has(const std::string& function) const { return metadata_["functions"].contains(function); }

  // Embeddings of b graphs: unit vectors, row by row. Throws Error where the model embeds nothing.
  std::vector<std::vector<float>> embed(const std::vector<EncodedGraph>& graphs) const;

  // Runtime on a GPU, by its columns (metadata()["devices"][...]["columns"]). Throws Error where the model
  // predicts no runtimes, or a column is missing.
  Prediction predict(const Workload& workload, const Json& device_columns) const;

 private:
  std::string path_;
  std::unique_ptr<Backend> backend_;
  Json metadata_;
  Registry registry_;
};

}  // namespace gnnperf
