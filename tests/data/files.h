// Files made for the tests of readers.
#pragma once

#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tandem::test {

using Bytes = std::vector<std::uint8_t>;

/// A temporary directory with files, in folders that are made as needed.
class TemporaryFolder : public TemporaryDirectory {
 public:
  std::filesystem::path operator/(const std::string& name) const { return path() / name; }

  std::filesystem::path write(const std::string& name, const Bytes& bytes) const {
    const auto file = path() / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream stream(file, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return file;
  }
};

inline Bytes gzip(const Bytes& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  Bytes result(deflateBound(&stream, static_cast<uLong>(bytes.size())));
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = result.data();
  stream.avail_out = static_cast<uInt>(result.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace tandem::test
