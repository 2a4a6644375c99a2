// Reading gzip files; used through open_bytes().
#pragma once

#include "tandem/data/byte_reader.h"

#include <cstdio>

namespace tandem::data::detail {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FileHandle = std::unique_ptr<std::FILE, FileCloser>;

/// Reads the whole compressed file at once (it must be below 1 GiB) and inflates it straight to where it is wanted.
std::unique_ptr<ByteReader> make_gzip_reader(std::string path, std::string advice, FileHandle file, std::int64_t size);

}  // namespace tandem::data::detail
