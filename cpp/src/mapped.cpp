#include "gnnperf/mapped.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gnnperf/error.h"

namespace gnnperf {

Mapped::Mapped(const std::string& path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about {};
  bool readable = file >= 0 && ::fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  size_ = readable ? static_cast<uint64_t>(about.st_size) : 0;
  void* mapped = size_ > 0 ? ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0) : nullptr;
  if (file >= 0) ::close(file);
  if (!readable || mapped == MAP_FAILED)
    throw Error("cannot read " + path + "; name a file written by `gnnperf export`");
  data_ = static_cast<const unsigned char*>(mapped);
}

Mapped::~Mapped() {
  if (data_ != nullptr) ::munmap(const_cast<unsigned char*>(data_), size_);
}

}  // namespace gnnperf
