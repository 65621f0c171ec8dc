#include "arguments.h"

#include <charconv>
#include <map>

#include "gnnperf/error.h"

const char USAGE[] =
    R"(usage: gnnperf-client VERB FILE... [OPTION...]

  embed MODEL GRAPH...             vector of every program graph
  retrieve MODEL STORE GRAPH...    nearest tuned nests and their schedules
  predict MODEL GRAPH... --gpu G   runtime on GPUs
  info MODEL                       what the model says of itself
  time MODEL GRAPH                 how long an embedding takes on this machine

MODEL and STORE are written by `gnnperf export`; GRAPH is the JSON of a program graph. Prints one JSON
document on standard output; errors are one line on standard error. Exit codes: 0 done, 1 failed, 2 bad input.

  -k N             neighbours (5)
  --schedules N    best schedules to show of each neighbour (3)
  --device NAME    whose records to use; may be left out where the store has those of one device only
  --gpu NAME       of the model's catalog, or a JSON file {"columns": {...}}; repeatable
  --family NAME    of the operator, where it is known: linear, bmm, softmax, layernorm, elementwise
  --threads N      of the network (1)
  --repeat N       embeddings to time (200)
  --batch N        graphs in each (1)
)";

namespace {

int64_t count(const std::string& name, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > 1'000'000)
    throw gnnperf::Error(name + ": expected a number from 1 to 1000000, got '" + text + "'");
  return value;
}

}  // namespace

Arguments parse(int words_count, const char* const* words) {
  Arguments result;
  std::map<std::string, int64_t*> counts = {{"-k", &result.k},
                                            {"--schedules", &result.schedules},
                                            {"--threads", &result.threads},
                                            {"--repeat", &result.repeat},
                                            {"--batch", &result.batch}};
  for (int i = 1; i < words_count; ++i) {
    const std::string word = words[i];
    if (word == "-h" || word == "--help") {
      result.help = true;
    } else if (word.size() > 1 && word[0] == '-') {
      const bool takes_text = word == "--device" || word == "--gpu" || word == "--family";
      if (!takes_text && !counts.count(word)) throw gnnperf::Error("unknown option '" + word + "'; see --help");
      if (i + 1 == words_count) throw gnnperf::Error(word + ": expected a value, got none");
      const std::string value = words[++i];
      if (word == "--gpu") result.gpus.push_back(value);
      else if (word == "--device") result.device = value;
      else if (word == "--family") result.family = value;
      else *counts[word] = count(word, value);
    } else if (result.verb.empty()) {
      result.verb = word;
    } else {
      result.files.push_back(word);
    }
  }
  return result;
}
