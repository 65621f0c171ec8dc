#include "gnnperf/checksum.h"

#include <array>
#include <cstdio>
#include <cstring>

#include "gnnperf/error.h"
#include "gnnperf/mapped.h"

namespace gnnperf {

namespace {

// tables[k][b]: the effect of byte b that k more bytes follow; eight bytes are looked up at once.
constexpr auto tables() {
  std::array<std::array<uint32_t, 256>, 8> found{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xEDB88320u : 0u);
    found[0][byte] = value;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      found[k][byte] = (found[k - 1][byte] >> 8) ^ found[0][found[k - 1][byte] & 255];
  return found;
}

constexpr auto TABLES = tables();

std::string hexadecimal(uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", unsigned{value});
  return text;
}

using Inflated = std::function<std::string(const std::string&)>;

// The structures of a zip file, which all lie inside of it.
class Zip {
 public:
  Zip(const Mapped& file, const Inflated& inflated) : data_(file.data()), size_(file.size()), inflated_(inflated) {}

  void check() const {
    const uint64_t end = end_record();
    uint64_t entries = number<uint16_t>(end + 10), at = number<uint32_t>(end + 16);
    if (end >= 20 && number<uint32_t>(end - 20) == 0x07064b50) {  // of more than 32 bits
      const uint64_t wide = number<uint64_t>(end - 12);
      entries = number<uint64_t>(wide + 32), at = number<uint64_t>(wide + 48);
    }
    for (uint64_t entry = 0; entry < entries; ++entry) at = check_entry(at);
  }

 private:
  template <typename T>
  T number(uint64_t offset) const {
    T value;
    std::memcpy(&value, bytes(offset, sizeof(T)), sizeof(T));
    return value;
  }

  const unsigned char* bytes(uint64_t offset, uint64_t count) const {
    if (offset > size_ || count > size_ - offset) throw Error("the archive is cut short");
    return data_ + offset;
  }

  // The last place that looks like the end of a zip file.
  uint64_t end_record() const {
    for (uint64_t back = 22; back <= size_ && back <= 22 + 0xFFFF; ++back)
      if (number<uint32_t>(size_ - back) == 0x06054b50) return size_ - back;
    throw Error("expected an archive written by `gnnperf export`, got another file, or one that is cut short");
  }

  // Check the part that an entry of the directory is about; where the next entry is.
  uint64_t check_entry(uint64_t at) const {
    if (number<uint32_t>(at) != 0x02014b50) throw Error("the archive's directory is damaged");
    const auto name_size = number<uint16_t>(at + 28), more_size = number<uint16_t>(at + 30);
    const std::string name(reinterpret_cast<const char*>(bytes(at + 46, name_size)), name_size);
    const auto method = number<uint16_t>(at + 10);
    const auto checksum = number<uint32_t>(at + 16);
    uint64_t size = number<uint32_t>(at + 24), packed = number<uint32_t>(at + 20), local = number<uint32_t>(at + 42);
    const uint64_t more = at + 46 + name_size;
    for (uint64_t field = more; field + 4 <= more + more_size; field += 4 + number<uint16_t>(field + 2)) {
      if (number<uint16_t>(field) != 1) continue;
      uint64_t wide = field + 4;  // has those that 32 bits cannot hold, in this order
      for (uint64_t* value : {&size, &packed, &local})
        if (*value == 0xFFFFFFFF) *value = number<uint64_t>(wide), wide += 8;
    }
    if (number<uint32_t>(local) != 0x04034b50) throw Error(name + ": damaged");
    const uint64_t begin = local + 30 + number<uint16_t>(local + 26) + number<uint16_t>(local + 28);
    if (method == 0) {
      check_crc32(name, bytes(begin, size), size, checksum);
    } else {
      const std::string content = inflated_(name);
      check_crc32(name, content.data(), content.size(), checksum);
    }
    return more + more_size + number<uint16_t>(at + 32);
  }

  const unsigned char* data_;
  uint64_t size_;
  const Inflated& inflated_;
};

}  // namespace

uint32_t crc32(const void* data, uint64_t size) {
  const auto* at = static_cast<const unsigned char*>(data);
  uint32_t value = 0xFFFFFFFFu;
  for (; size >= 8; size -= 8, at += 8) {
    uint32_t low, high;
    std::memcpy(&low, at, 4);
    std::memcpy(&high, at + 4, 4);
    low ^= value;
    value = TABLES[7][low & 255] ^ TABLES[6][low >> 8 & 255] ^ TABLES[5][low >> 16 & 255] ^ TABLES[4][low >> 24] ^
            TABLES[3][high & 255] ^ TABLES[2][high >> 8 & 255] ^ TABLES[1][high >> 16 & 255] ^ TABLES[0][high >> 24];
  }
  for (; size > 0; --size, ++at) value = (value >> 8) ^ TABLES[0][(value ^ *at) & 255];
  return ~value;
}

void check_crc32(const std::string& what, const void* data, uint64_t size, uint32_t expected) {
  const uint32_t got = crc32(data, size);
  if (got != expected) throw Error(what + ": checksum is " + hexadecimal(got) + ", expected " + hexadecimal(expected));
}

void check_archive(const std::string& path, const Inflated& inflated) {
  const Mapped file(path);
  try {
    Zip(file, inflated).check();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw Error(path + ": " + text.substr(0, text.find('\n')) + "; export the checkpoint again");
  }
}

}  // namespace gnnperf
