// A fuzzer's bytes as a file, for readers that take a path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace tandem::fuzz {

/// A file in memory, which has the bytes of one input after another.
class InputFile {
 public:
  InputFile() : descriptor_(::memfd_create("fuzz", 0)) {}
  ~InputFile() { ::close(descriptor_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  void fill(const std::uint8_t* data, std::size_t size) const {
    const auto bytes = static_cast<ssize_t>(size);
    if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, data, size, 0) != bytes) std::abort();
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

/// Ends the fuzzer, which keeps the input.
inline void expect(bool condition) {
  if (!condition) std::abort();
}

}  // namespace tandem::fuzz
