// An exported schedule store: one flat file, mapped into memory (layout: gnnperf/export/flat_store.py).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gnnperf/json.h"
#include "gnnperf/mapped.h"

namespace gnnperf {

struct Found {
  int64_t row;
  float distance;  // 1 - cosine
};

class Store {
 public:
  // Map a file and compare the checksums of all of it. Throws Error where it is no store, or is damaged.
  explicit Store(const std::string& path);

  // The k nests nearest to a vector that have a record of a device that worked, nearest first.
  // Throws Error where the vector is of another width, not finite or zero.
  std::vector<Found> nearest(const std::vector<float>& query, int64_t k, const std::string& fingerprint) const;

  // What is known of the nest in a row: names, digest, records.
  Json nest(int64_t row) const;

  const Json& header() const { return header_; }
  const std::string& encoder_id() const { return encoder_id_; }
  const std::vector<std::string>& fingerprints() const { return fingerprints_; }
  int64_t nests() const { return nests_; }
  int64_t width() const { return width_; }

 private:
  template <typename T>
  const T* section(const char* name, uint64_t count) const;
  void open_sections();

  std::string path_;
  Mapped file_;
  Json header_;
  std::string encoder_id_;
  std::vector<std::string> fingerprints_;
  int64_t nests_ = 0, width_ = 0, lists_ = 0, probes_ = 0;
  const float *vectors_ = nullptr, *centroids_ = nullptr;
  const unsigned char* usable_ = nullptr;
  const uint64_t *lines_ = nullptr, *bounds_ = nullptr;
  const char* text_ = nullptr;
  uint64_t text_size_ = 0;
};

}  // namespace gnnperf
