// gnnperf-client: embed program graphs, find tuned nests like them, predict runtimes. See USAGE.
#include <algorithm>
#include <chrono>
#include <cctype>
#include <cmath>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include "arguments.h"
#include "gnnperf/error.h"
#include "gnnperf/model.h"
#include "gnnperf/store.h"

using gnnperf::Error;
using gnnperf::Graph;
using gnnperf::Json;
using gnnperf::Model;

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Graph read_graph(const Model& model, const std::string& path) {
  try {
    return model.registry().read(gnnperf::read_json(path));
  } catch (const Error& error) {
    const std::string text = error.what();
    throw Error(text.find(path) == std::string::npos ? path + ": " + text : text);
  }
}

std::vector<std::vector<float>> vectors_of(const Model& model, const std::vector<std::string>& paths) {
  std::vector<gnnperf::EncodedGraph> encoded;
  for (const auto& path : paths) encoded.push_back(model.registry().encode(read_graph(model, path)));
  return model.embed(encoded);
}

std::vector<std::string> files_after(const Arguments& arguments, size_t fixed, const char* names) {
  if (arguments.files.size() <= fixed)
    throw Error(arguments.verb + ": expected " + names + ", got " + std::to_string(arguments.files.size()) +
                " files; see --help");
  return {arguments.files.begin() + fixed, arguments.files.end()};
}

Json embed(const Arguments& arguments) {
  const auto paths = files_after(arguments, 1, "MODEL GRAPH...");
  const Model model(arguments.files[0], int(arguments.threads));
  const auto vectors = vectors_of(model, paths);
  Json graphs = Json::array();
  for (size_t i = 0; i < paths.size(); ++i) graphs.push_back({{"file", paths[i]}, {"embedding", vectors[i]}});
  return {{"encoder_id", model.metadata().at("encoder_id")}, {"graphs", graphs}};
}

// The best schedules of a nest that were measured on a device; records come with the fastest first.
Json best_schedules(const Json& nest, const std::string& device, int64_t count) {
  Json best = Json::array();
  for (const auto& record : gnnperf::member(nest, "records", "the store")) {
    if (int64_t(best.size()) >= count) break;
    if (gnnperf::member(record, "status", "the store") == "ok" && record.value("device_fingerprint", "") == device)
      best.push_back({{"schedule", gnnperf::member(record, "schedule", "the store")},
                      {"speedup", gnnperf::member(record, "speedup", "the store")}});
  }
  return best;
}

std::string device_of(const Arguments& arguments, const gnnperf::Store& store) {
  std::string known;
  for (const auto& name : store.fingerprints()) known += (known.empty() ? "" : ", ") + name;
  if (arguments.device.empty()) {
    if (store.fingerprints().size() == 1) return store.fingerprints()[0];
    throw Error("expected --device out of " + known + ", got none");
  }
  for (const auto& name : store.fingerprints())
    if (name == arguments.device) return name;
  throw Error("expected --device out of " + known + ", got " + arguments.device);
}

Json retrieve(const Arguments& arguments) {
  const auto paths = files_after(arguments, 2, "MODEL STORE GRAPH...");
  const gnnperf::Store store(arguments.files[1]);
  const std::string device = device_of(arguments, store);
  const Model model(arguments.files[0], int(arguments.threads));
  const std::string encoder = gnnperf::member(model.metadata(), "encoder_id", arguments.files[0]);
  if (store.encoder_id() != encoder)
    throw Error(arguments.files[1] + ": encoder_id is " + store.encoder_id() + ", expected " + encoder +
                " of the model; export both from one checkpoint");
  const auto vectors = vectors_of(model, paths);
  Json graphs = Json::array();
  for (size_t i = 0; i < paths.size(); ++i) {
    Json neighbours = Json::array();
    const auto start = Clock::now();
    const auto nearest = store.nearest(vectors[i], arguments.k, device);
    const double search_ms = milliseconds_since(start);
    for (const auto& found : nearest) {
      const Json nest = store.nest(found.row);
      neighbours.push_back({{"digest", nest.value("digest", Json())},
                            {"kernel", nest.value("kernel", Json())},
                            {"family", nest.value("family", Json())},
                            {"distance", found.distance},
                            {"schedules", best_schedules(nest, device, arguments.schedules)}});
    }
    graphs.push_back({{"file", paths[i]}, {"neighbours", neighbours}, {"search_ms", search_ms}});
  }
  return {{"encoder_id", encoder}, {"device", device}, {"graphs", graphs}};
}

// Without case and punctuation, and without the vendor, which some tools say and some do not.
std::string plain(const std::string& name) {
  std::string result;
  for (char c : name)
    if (std::isalnum(static_cast<unsigned char>(c))) result += char(std::tolower(static_cast<unsigned char>(c)));
  for (const char* vendor : {"nvidia", "amd"})
    if (result.rfind(vendor, 0) == 0) result.erase(0, std::string(vendor).size());
  return result;
}

Json gpu_of(const Model& model, const std::string& name) {
  if (name.size() > 5 && name.substr(name.size() - 5) == ".json") return gnnperf::read_json(name);
  const Json& devices = gnnperf::member(model.metadata(), "devices", "the model's metadata");
  for (const auto& [key, device] : devices.items()) {
    bool same = plain(key) == plain(name) || plain(device.at("name")) == plain(name);
    for (const auto& alias : device.at("aliases")) same = same || plain(alias) == plain(name);
    if (same) return device;
  }
  throw Error("expected a GPU of the model's catalog (gnnperf-client info MODEL) or a .json file, got '" + name + "'");
}

Json predict(const Arguments& arguments) {
  const auto paths = files_after(arguments, 1, "MODEL GRAPH...");
  if (arguments.gpus.empty()) throw Error("predict: expected at least one --gpu, got none");
  const Model model(arguments.files[0], int(arguments.threads));
  if (!model.has("runtime")) throw Error(arguments.files[0] + ": this model predicts no runtimes");
  const Json& levels = model.metadata().at("levels");
  const auto measured = model.metadata().at("measured_families").get<std::vector<std::string>>();
  Json predictions = Json::array();
  for (const auto& path : paths) {
    const auto workload = workload_of(model.registry(), read_graph(model, path), arguments.family);
    const std::string family = family_of(workload, model.metadata().at("families").get<std::vector<std::string>>());
    for (const auto& name : arguments.gpus) {
      const Json gpu = gpu_of(model, name);
      const auto found = model.predict(workload, gnnperf::member(gpu, "columns", name));
      Json row = {{"file", path}, {"gpu", name}, {"objection", nullptr}};
      row["remarks"] = gpu.value("remarks", Json::array());
      if (!found.objection.empty()) {
        row["objection"] = found.objection;
        predictions.push_back(row);
        continue;
      }
      if (std::find(measured.begin(), measured.end(), family) == measured.end())
        row["remarks"].push_back("it is of a family that was not measured");
      row["family"] = family;
      row["runtime_ms"] = found.runtime_s * 1e3;
      row["roofline_ms"] = found.roofline_s * 1e3;
      for (size_t i = 0; i < levels.size(); ++i) {
        const std::string level = std::to_string(std::lround(levels[i].get<double>() * 100)) + "%";
        row["intervals_ms"][level] = {found.lower_s.at(i) * 1e3, found.upper_s.at(i) * 1e3};
      }
      predictions.push_back(row);
    }
  }
  return {{"predictions", predictions}};
}

Json info(const Arguments& arguments) {
  if (arguments.files.size() != 1) throw Error("info: expected MODEL; see --help");
  Json metadata = Model(arguments.files[0]).metadata();
  metadata.erase("graph");
  return metadata;
}

Json time(const Arguments& arguments, Clock::time_point start) {
  const auto paths = files_after(arguments, 1, "MODEL GRAPH");
  const Model model(arguments.files[0], int(arguments.threads));
  const double loaded_ms = milliseconds_since(start);
  const Graph graph = read_graph(model, paths[0]);
  const std::vector<gnnperf::EncodedGraph> batch(arguments.batch, model.registry().encode(graph));
  model.embed(batch);
  const double first_ms = milliseconds_since(start);
  std::vector<double> times, cpu_times;
  for (int64_t i = 0; i < arguments.repeat; ++i) {
    const auto before = Clock::now();
    const std::clock_t cpu_before = std::clock();
    model.embed(batch);
    cpu_times.push_back(1e3 * double(std::clock() - cpu_before) / CLOCKS_PER_SEC);
    times.push_back(milliseconds_since(before));
  }
  std::sort(times.begin(), times.end());
  std::sort(cpu_times.begin(), cpu_times.end());
  return {{"nodes", graph.nodes.size()},          {"edges", graph.edges.size()},
          {"batch", arguments.batch},             {"threads", arguments.threads},
          {"repeat", arguments.repeat},           {"loaded_ms", loaded_ms},
          {"first_ms", first_ms},                 {"median_ms", times[times.size() / 2]},
          {"p95_ms", times[times.size() * 95 / 100]},
          // Of all threads together: says more where other programs want the same cores.
          {"cpu_median_ms", cpu_times[cpu_times.size() / 2]}};
}

Json run(const Arguments& arguments, Clock::time_point start) {
  if (arguments.verb == "embed") return embed(arguments);
  if (arguments.verb == "retrieve") return retrieve(arguments);
  if (arguments.verb == "predict") return predict(arguments);
  if (arguments.verb == "info") return info(arguments);
  if (arguments.verb == "time") return time(arguments, start);
  throw Error("expected a verb out of embed, retrieve, predict, info, time, got '" + arguments.verb + "'; see --help");
}

int fail(const std::string& text, int code) {
  std::cerr << "gnnperf-client: " << text << "\n";
  return code;
}

}  // namespace

int main(int count, char** words) {
  const auto start = Clock::now();
  try {
    const Arguments arguments = parse(count, words);
    if (arguments.help || arguments.verb.empty()) {
      (arguments.help ? std::cout : std::cerr) << USAGE;
      return arguments.help ? 0 : 2;
    }
    std::cout << run(arguments, start).dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
    return std::cout.flush() ? 0 : fail("cannot write to standard output", 1);
  } catch (const Error& error) {
    return fail(error.what(), 2);
  } catch (const std::exception& error) {
    return fail(Error(std::string("unexpected: ") + error.what()).what(), 1);
  }
}
