#include "gnnperf/model.h"

#include <ATen/Parallel.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/script.h>

#include <cmath>
#include <map>
#include <span>

#include "gnnperf/checksum.h"
#include "gnnperf/error.h"

namespace gnnperf {

using Tensors = std::vector<at::Tensor>;

struct Backend {
  virtual ~Backend() = default;
  virtual Tensors call(const std::string& function, const Tensors& inputs) = 0;
  std::string metadata;
};

namespace {

constexpr char METADATA[] = "gnnperf.json";  // of the file inside the archive
constexpr int FORMAT_VERSION = 1;
constexpr size_t NODES_AT_ONCE = 512;

template <typename T>
at::Tensor tensor(const std::vector<T>& values, std::vector<int64_t> shape, at::ScalarType type) {
  auto result = at::empty(shape, type);
  if (!values.empty()) std::memcpy(result.data_ptr(), values.data(), values.size() * sizeof(T));
  return result;
}

std::string first_line(const std::exception& error) {
  std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

void expect(const std::string& path, const std::string& name, const Json& got, const Json& expected) {
  if (got != expected)
    throw Error(path + ": " + name + " is " + shown(got) + ", expected " + shown(expected) +
                "; export the checkpoint again with the gnnperf that this client is from");
}

std::string type_name(at::ScalarType type) {
  if (type == at::kLong) return "int64";
  return type == at::kFloat ? "float32" : type == at::kDouble ? "float64" : "another type";
}

// Compare tensors with what the metadata says of them; names of sizes mean the same throughout a call.
void check_tensors(const std::string& where, const Tensors& tensors, const Json& specs,
                   std::map<std::string, int64_t>& sizes) {
  if (tensors.size() != specs.size())
    throw Error(where + ": expected " + std::to_string(specs.size()) + " tensors, got " +
                std::to_string(tensors.size()));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Json& shape = specs[i].at("shape");
    const std::string type = type_name(tensors[i].scalar_type());
    bool fits = tensors[i].dim() == int64_t(shape.size()) && type == specs[i].at("dtype");
    for (size_t d = 0; fits && d < shape.size(); ++d) {
      if (shape[d].is_number()) {
        fits = tensors[i].size(d) == shape[d].get<int64_t>();
        continue;
      }
      const std::string text = shape[d];
      const size_t plus = text.find('+');
      const int64_t size = tensors[i].size(d) - (plus == std::string::npos ? 0 : std::stoll(text.substr(plus + 1)));
      fits = sizes.emplace(text.substr(0, plus), size).first->second == size;
    }
    if (!fits) {
      std::string got = type + "[";
      for (int64_t d = 0; d < tensors[i].dim(); ++d) got += (d ? "," : "") + std::to_string(tensors[i].size(d));
      throw Error(where + ": " + specs[i].at("name").get<std::string>() + ": expected " +
                  specs[i].at("dtype").get<std::string>() + shape.dump() + ", got " + got + "]");
    }
  }
}

double column_of(const Workload& w, const std::string& name, const Json& metadata) {
  auto code = [&](const char* list, const std::string& word) {
    const Json& words = metadata.at(list);
    for (size_t i = 0; i < words.size(); ++i)
      if (words[i] == word) return double(i);
    return -1.0;
  };
  if (name == "kind") return code("kinds", w.kind);
  if (name == "family") return code("families", family_of(w, metadata.at("families").get<std::vector<std::string>>()));
  const std::map<std::string, double> numbers = {
      {"flops", w.flops}, {"read_bytes", w.read_bytes}, {"written_bytes", w.written_bytes}, {"batch", w.batch},
      {"m", w.m},         {"n", w.n},                   {"k", w.k},                         {"rows", w.rows},
      {"columns", w.columns}, {"passes", w.passes}};
  auto found = numbers.find(name);
  if (found == numbers.end()) throw Error("the model wants '" + name + "' of a workload, unknown to this client");
  return found->second;
}

class TorchScript : public Backend {
 public:
  explicit TorchScript(const std::string& path) {
    torch::jit::ExtraFilesMap extra{{METADATA, ""}};
    module_ = torch::jit::load(path, at::kCPU, extra);
    module_.eval();
    metadata = extra[METADATA];
  }
  Tensors call(const std::string& function, const Tensors& inputs) override {
    const auto found = module_.attr(function).toModule().forward({inputs.begin(), inputs.end()});
    if (found.isTensor()) return {found.toTensor()};
    Tensors result;
    for (const auto& output : found.toTupleRef().elements()) result.push_back(output.toTensor());
    return result;
  }

 private:
  torch::jit::Module module_;
};

class Compiled : public Backend {
 public:
  explicit Compiled(const std::string& path) : path_(path) {
    caffe2::serialize::PyTorchStreamReader reader(path);
    auto [data, size] = reader.getRecord(std::string("extra/") + METADATA);
    metadata.assign(static_cast<const char*>(data.get()), size);
  }
  Tensors call(const std::string& function, const Tensors& inputs) override {
    auto& loaded = loaders_[function];
    if (!loaded) loaded = std::make_unique<torch::inductor::AOTIModelPackageLoader>(path_, function, true);
    return loaded->run(inputs);
  }

 private:
  std::string path_;
  std::map<std::string, std::unique_ptr<torch::inductor::AOTIModelPackageLoader>> loaders_;
};

// Run a function and compare everything that goes in and comes out with the metadata.
Tensors call(const std::string& path, const Json& metadata, Backend& backend, const std::string& function,
             const Tensors& inputs) {
  const Json& about = metadata.at("functions").at(function);
  std::map<std::string, int64_t> sizes;
  check_tensors(path + ": " + function, inputs, about.at("inputs"), sizes);
  Tensors outputs;
  try {
    c10::InferenceMode inference;
    outputs = backend.call(function, inputs);
  } catch (const std::exception& error) {
    throw Error(path + ": " + function + " failed: " + first_line(error));
  }
  check_tensors(path + ": result of " + function, outputs, about.at("outputs"), sizes);
  return outputs;
}

// Graphs side by side, as one batch.
struct Batch {
  explicit Batch(std::span<const EncodedGraph> graphs) {
    auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    std::vector<int64_t> targets;
    for (const auto& graph : graphs) {
      const int64_t start = ptr.back();
      append(all.node_kind, graph.node_kind);
      append(all.node_features, graph.node_features);
      append(all.edge_kind, graph.edge_kind);
      append(all.edge_features, graph.edge_features);
      append(all.graph_features, graph.graph_features);
      for (int64_t node : graph.edge_source) ends.push_back(node + start);
      for (int64_t node : graph.edge_target) targets.push_back(node + start);
      owner.resize(owner.size() + graph.node_kind.size(), int64_t(ptr.size()) - 1);
      ptr.push_back(start + int64_t(graph.node_kind.size()));
    }
    append(ends, targets);
  }

  // The input of `embed` that metadata describes.
  at::Tensor input(const Json& spec, const Registry& registry) const {
    const std::string name = spec.at("name");
    const int64_t n = ptr.back(), e = int64_t(all.edge_kind.size()), b = int64_t(ptr.size()) - 1;
    if (name == "node_kind") return tensor(all.node_kind, {n}, at::kLong);
    if (name == "node_features") return tensor(all.node_features, {n, int64_t(registry.node_width)}, at::kFloat);
    if (name == "edge_index") return tensor(ends, {2, e}, at::kLong);
    if (name == "edge_kind") return tensor(all.edge_kind, {e}, at::kLong);
    if (name == "edge_features") return tensor(all.edge_features, {e, int64_t(registry.edge_width)}, at::kFloat);
    if (name == "graph_features") return tensor(all.graph_features, {b, int64_t(registry.graph_width)}, at::kFloat);
    if (name == "ptr") return tensor(ptr, {b + 1}, at::kLong);
    if (name == "batch") return tensor(owner, {n}, at::kLong);
    throw Error("embed wants '" + name + "', which this client does not know");
  }

  EncodedGraph all;
  std::vector<int64_t> ends, ptr{0}, owner;
};

void require(const std::string& path, const Model& model, const std::string& function, const char* what) {
  if (!model.has(function)) throw Error(path + ": this model " + what + "; export a checkpoint that does");
}

}  // namespace

Model::Model(const std::string& path, int threads) : path_(path) {
  at::set_num_threads(threads);
  // One graph is answered before a profiling executor has seen enough to optimise anything.
  torch::jit::getProfilingMode() = false;
  check_archive(path, [&](const std::string& name) {  // names of records lack the first folder
    auto [data, size] = caffe2::serialize::PyTorchStreamReader(path).getRecord(name.substr(name.find('/') + 1));
    return std::string(static_cast<const char*>(data.get()), size);
  });
  const bool compiled = path.size() > 4 && path.substr(path.size() - 4) == ".pt2";
  try {
    if (compiled) backend_ = std::make_unique<Compiled>(path);
    else backend_ = std::make_unique<TorchScript>(path);
    metadata_ = Json::parse(backend_->metadata);
  } catch (const std::exception& error) {
    throw Error("cannot read the model " + path + ": " + first_line(error) + "; write it with `gnnperf export`");
  }
  try {
    expect(path, "format", metadata_.at("format"), "gnnperf-model");
    expect(path, "format_version", metadata_.at("format_version"), FORMAT_VERSION);
    expect(path, "backend", metadata_.at("backend"), compiled ? "aoti" : "torchscript");
    registry_ = Registry(metadata_.at("graph"));
    if (has("embed")) {
      const Json widths = {registry_.node_width, registry_.edge_width, registry_.graph_width};
      Json got = Json::array();
      for (const auto& input : metadata_.at("functions").at("embed").at("inputs"))
        for (const char* name : {"node_features", "edge_features", "graph_features"})
          if (input.at("name") == name) got.push_back(input.at("shape").at(1));
      expect(path, "widths of node, edge and graph features", got.dump(), widths.dump());
    }
  } catch (const Json::exception& error) {
    throw Error(path + ": damaged metadata (" + error.what() + "); export the checkpoint again");
  }
}

Model::~Model() = default;

std::vector<std::vector<float>> Model::embed(const std::vector<EncodedGraph>& graphs) const {
  require(path_, *this, "embed", "embeds no graphs");
  std::vector<std::vector<float>> result;
  // As many graphs at once as a cache holds the states of: larger batches are slower.
  for (size_t from = 0, to = 0; from < graphs.size(); from = to) {
    size_t nodes = 0;
    while (to < graphs.size() && (to == from || nodes + graphs[to].node_kind.size() <= NODES_AT_ONCE))
      nodes += graphs[to++].node_kind.size();
    const Batch batch(std::span<const EncodedGraph>(graphs).subspan(from, to - from));
    Tensors inputs;
    for (const auto& spec : metadata_.at("functions").at("embed").at("inputs"))
      inputs.push_back(batch.input(spec, registry_));
    const at::Tensor rows = call(path_, metadata_, *backend_, "embed", inputs)[0].contiguous();
    for (int64_t i = 0; i < rows.size(0); ++i) {
      const float* row = rows.data_ptr<float>() + i * rows.size(1);
      result.emplace_back(row, row + rows.size(1));
    }
  }
  return result;
}

Prediction Model::predict(const Workload& workload, const Json& device_columns) const {
  require(path_, *this, "runtime", "predicts no runtimes");
  std::vector<double> about_workload, about_device;
  const Json& specs = metadata_.at("functions").at("runtime").at("inputs");
  for (const auto& name : specs.at(0).at("columns")) about_workload.push_back(column_of(workload, name, metadata_));
  for (const auto& name : specs.at(1).at("columns")) {
    const Json& value = member(device_columns, name.get_ref<const std::string&>().c_str(), "the GPU's columns");
    if (!value.is_number()) throw Error("the GPU's columns: expected numbers, got " + shown(value));
    about_device.push_back(value);
  }
  const auto outputs = call(path_, metadata_, *backend_, "runtime",
                            {tensor(about_workload, {1, int64_t(about_workload.size())}, at::kDouble),
                             tensor(about_device, {1, int64_t(about_device.size())}, at::kDouble)});
  auto row = [&](int i) {
    const auto values = outputs.at(i).contiguous();
    return std::vector<double>(values.data_ptr<double>(), values.data_ptr<double>() + values.numel());
  };
  Prediction found{row(0).at(0), row(3).at(0), row(1), row(2), ""};
  const auto outside = row(4);
  const Json& names = metadata_.at("functions").at("runtime").at("outputs").at(4).at("columns");
  for (size_t i = 0; i < outside.size(); ++i)
    if (!(outside[i] <= metadata_.at("farthest_doublings").get<double>()))
      found.objection = "the GPU lies " + std::to_string(std::lround(outside[i])) + " doublings of " +
                        names.at(i).get<std::string>() + " away from every GPU that was measured";
  if (workload.read_bytes + workload.written_bytes <= 0)
    found.objection = "the kernel touches no memory whose size is known (extents that depend on data?)";
  if (found.objection.empty() && !std::isfinite(found.runtime_s)) found.objection = "its sizes make no runtime";
  return found;
}

}  // namespace gnnperf
