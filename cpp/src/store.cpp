#include "gnnperf/store.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "gnnperf/checksum.h"
#include "gnnperf/error.h"

namespace gnnperf {

namespace {

constexpr char MAGIC[] = "GNNPSTOR";
constexpr uint32_t VERSION = 2;
constexpr uint64_t ALIGNMENT = 64, PREAMBLE = 20;  // bytes; the second are those before the header
constexpr int64_t MOST = int64_t{1} << 40;  // of anything that is counted: products of two stay in range

// Sixteen sums side by side: what compilers turn into vector instructions without being told to reorder.
float dot(const float* a, const float* b, int64_t n) {
  float sums[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int j = 0; j < 16; ++j) sums[j] += a[i + j] * b[i + j];
  float total = 0.0f;
  for (float sum : sums) total += sum;
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

struct Hit {
  float similarity;
  int64_t row;
  bool operator<(const Hit& other) const {  // the better one first
    return similarity != other.similarity ? similarity > other.similarity : row < other.row;
  }
};

// The k best so far; the worst of them on top.
class Best {
 public:
  explicit Best(int64_t k) : k_(static_cast<size_t>(k)) {}
  void offer(Hit hit) {
    if (heap_.size() == k_ && !(hit < heap_.front())) return;
    if (heap_.size() == k_) {
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
    }
    heap_.push_back(hit);
    std::push_heap(heap_.begin(), heap_.end());
  }
  size_t size() const { return heap_.size(); }
  std::vector<Hit> sorted() {
    std::sort_heap(heap_.begin(), heap_.end());
    return heap_;
  }

 private:
  size_t k_;
  std::vector<Hit> heap_;
};

int64_t count_of(const Json& header, const char* name) {
  const Json& value = header.at(name);
  if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(MOST))
    throw Error(std::string("expected ") + name + " to be a count, got " + shown(value));
  return value.get<int64_t>();
}

}  // namespace

Store::Store(const std::string& path) : path_(path), file_(path) {
  try {
    open_sections();
  } catch (const std::exception& error) {
    throw Error(path + ": " + error.what() + "; export the store again");
  }
}

void Store::open_sections() {
  if (file_.size() < PREAMBLE || std::memcmp(file_.data(), MAGIC, 8) != 0)
    throw Error("expected a store written by `gnnperf export`, got another file");
  uint32_t version, length, checksum;
  std::memcpy(&version, file_.data() + 8, 4);
  std::memcpy(&length, file_.data() + 12, 4);
  std::memcpy(&checksum, file_.data() + 16, 4);
  if (version != VERSION)
    throw Error("store version is " + std::to_string(version) + ", expected " + std::to_string(VERSION));
  if (length > file_.size() - PREAMBLE) throw Error("the file is cut short");
  const char* text = reinterpret_cast<const char*>(file_.data()) + PREAMBLE;
  check_crc32("the header", text, length, checksum);
  header_ = Json::parse(text, text + length);
  encoder_id_ = header_.at("encoder_id").get<std::string>();
  fingerprints_ = header_.at("fingerprints").get<std::vector<std::string>>();
  nests_ = count_of(header_, "nests"), width_ = count_of(header_, "embedding_width");
  lists_ = count_of(header_, "lists"), probes_ = count_of(header_, "probes");
  if (width_ < 1 || width_ > (1 << 20)) throw Error("expected an embedding width, got " + std::to_string(width_));
  if (probes_ > lists_ || (lists_ > 0 && probes_ < 1)) throw Error("expected as many probes as lists at most");
  vectors_ = section<float>("vectors", uint64_t(nests_) * width_);
  usable_ = section<unsigned char>("usable", uint64_t(nests_) * fingerprints_.size());
  lines_ = section<uint64_t>("lines", uint64_t(nests_) + 1);
  centroids_ = section<float>("centroids", uint64_t(lists_) * width_);
  bounds_ = section<uint64_t>("bounds", uint64_t(lists_) + 1);
  text_size_ = header_.at("sections").at("text").at(1).get<uint64_t>();
  text_ = section<char>("text", text_size_);
  for (int64_t list = 0; list < lists_; ++list)
    if (bounds_[list] > bounds_[list + 1] || bounds_[list + 1] > uint64_t(nests_))
      throw Error("the lists do not follow one another");
}

template <typename T>
const T* Store::section(const char* name, uint64_t count) const {
  const Json& place = header_.at("sections").at(name);
  const uint64_t offset = place.at(0).get<uint64_t>(), size = place.at(1).get<uint64_t>();
  const bool inside = offset <= file_.size() && size <= file_.size() - offset;
  if (!inside || offset % ALIGNMENT != 0 || size / sizeof(T) != count || size % sizeof(T) != 0)
    throw Error(std::string("section ") + name + " does not fit the file, which may be cut short");
  check_crc32(name, file_.data() + offset, size, place.at(2).get<uint32_t>());
  return reinterpret_cast<const T*>(file_.data() + offset);
}

std::vector<Found> Store::nearest(const std::vector<float>& query, int64_t k, const std::string& fingerprint) const {
  double square = 0.0;
  for (float value : query) square += double(value) * value;
  if (int64_t(query.size()) != width_)
    throw Error("expected an embedding of width " + std::to_string(width_) + ", got " + std::to_string(query.size()));
  if (!std::isfinite(square) || square == 0.0) throw Error("expected an embedding that is finite and not zero");
  auto device = std::find(fingerprints_.begin(), fingerprints_.end(), fingerprint);
  if (device == fingerprints_.end() || k < 1) return {};
  std::vector<float> unit(query.size());
  std::transform(query.begin(), query.end(), unit.begin(), [&](float v) { return float(v / std::sqrt(square)); });
  const unsigned char* usable = usable_ + (device - fingerprints_.begin()) * nests_;
  Best best(std::min(k, std::max<int64_t>(nests_, 1)));
  auto scan = [&](int64_t from, int64_t to) {
    for (int64_t row = from; row < to; ++row)
      if (usable[row]) best.offer({dot(vectors_ + row * width_, unit.data(), width_), row});
  };
  if (lists_ > 0) {
    Best lists(probes_);
    for (int64_t list = 0; list < lists_; ++list)
      lists.offer({dot(centroids_ + list * width_, unit.data(), width_), list});
    for (const Hit& list : lists.sorted()) scan(int64_t(bounds_[list.row]), int64_t(bounds_[list.row + 1]));
  }
  if (lists_ == 0 || int64_t(best.size()) < k) {  // too few usable ones in those lists: look at all
    best = Best(std::min(k, std::max<int64_t>(nests_, 1)));
    scan(0, nests_);
  }
  std::vector<Found> found;
  for (const Hit& hit : best.sorted()) found.push_back({hit.row, std::max(0.0f, 1.0f - hit.similarity)});
  return found;
}

Json Store::nest(int64_t row) const {
  if (row < 0 || row >= nests_) throw Error(path_ + ": expected a row below " + std::to_string(nests_));
  const uint64_t begin = lines_[row], end = lines_[row + 1];
  if (begin > end || end > text_size_) throw Error(path_ + ": a line lies outside of the text; export the store again");
  try {
    Json nest = Json::parse(text_ + begin, text_ + end);
    if (!nest.is_object()) throw Error("no object");
    return nest;
  } catch (const std::exception& error) {
    throw Error(path_ + ": row " + std::to_string(row) + " is damaged (" + error.what() + "); export the store again");
  }
}

}  // namespace gnnperf
