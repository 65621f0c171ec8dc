// Feeds damaged files to the library, all in one process: `mutants MODEL FILE...`, where a FILE that ends in
// .gnnstore is opened and searched, and any other is read as a program graph, encoded and embedded. Prints
// one line per file, "ok" or the error. Only gnnperf::Error is an error; anything else ends the process.
#include <cstdio>
#include <string>
#include <vector>

#include "gnnperf/error.h"
#include "gnnperf/model.h"
#include "gnnperf/store.h"
#include "gnnperf/workload.h"

namespace {

bool is_store(const std::string& path) { return path.size() > 9 && path.substr(path.size() - 9) == ".gnnstore"; }

void search(const std::string& path) {
  const gnnperf::Store store(path);
  std::vector<float> query(store.width(), 0.5f);
  for (const auto& device : store.fingerprints())
    for (const auto& found : store.nearest(query, 100, device)) store.nest(found.row);
}

void embed(const gnnperf::Model& model, const std::string& path) {
  const auto graph = model.registry().read(gnnperf::read_json(path));
  gnnperf::workload_of(model.registry(), graph, "");
  model.embed({model.registry().encode(graph)});
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 2;
  const gnnperf::Model model(words[1]);
  for (int i = 2; i < count; ++i) {
    try {
      is_store(words[i]) ? search(words[i]) : embed(model, words[i]);
      std::puts("ok");
    } catch (const gnnperf::Error& error) {
      std::printf("%s\n", error.what());
    }
  }
}
