// A file, mapped into memory for reading.
#pragma once

#include <cstdint>
#include <string>

namespace gnnperf {

class Mapped {
 public:
  // Throws Error where it cannot be read. An empty file has no data.
  explicit Mapped(const std::string& path);
  ~Mapped();
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  const unsigned char* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  const unsigned char* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace gnnperf
