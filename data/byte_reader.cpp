// Opening data files, and reading plain ones.
#include "tandem/data/byte_reader.h"

#include "tandem/core/error.h"
#include "tandem/data/gzip_reader.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tandem::data {

namespace {

/// A file that is known to be regular, and its size.
struct OpenFile {
  detail::FileHandle handle;
  std::int64_t size;
};

OpenFile open_regular(const std::filesystem::path& path, const std::string& advice) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  require(status.type() != std::filesystem::file_type::not_found, "{}: no such file; {}", path_text(path), advice);
  require(status.type() != std::filesystem::file_type::directory, "{}: is a directory, expected a file; {}",
          path_text(path), advice);
  require(status.type() == std::filesystem::file_type::regular, "{}: is not a regular file ({}); {}", path_text(path),
          error ? error.message() : "a device, pipe or socket", advice);
  const auto size = std::filesystem::file_size(path, error);
  detail::FileHandle handle(std::fopen(path.c_str(), "rb"));
  require(handle != nullptr && !error, "{}: cannot be opened: {}; {}", path_text(path),
          error ? error.message() : std::strerror(errno), advice);
  std::setvbuf(handle.get(), nullptr, _IONBF, 0);  // reads are large: no copy through a buffer
  require(size > 0, "{}: is empty; {}", path_text(path), advice);
  return {std::move(handle), static_cast<std::int64_t>(size)};
}

class PlainReader final : public ByteReader {
 public:
  PlainReader(std::string path, std::string advice, OpenFile file)
      : ByteReader(std::move(path), std::move(advice)), file_(std::move(file)) {}

  void read(std::span<std::uint8_t> into, std::string_view what) override {
    const std::size_t got = std::fread(into.data(), 1, into.size(), file_.handle.get());
    require(got == into.size() || std::ferror(file_.handle.get()) == 0, "{}: cannot be read at offset {}: {}; {}",
            path_, offset_ + static_cast<std::int64_t>(got), std::strerror(errno), advice_);
    require(got == into.size(), "{}: truncated at offset {}: expected {} more bytes of {}; {}", path_,
            offset_ + static_cast<std::int64_t>(got), into.size() - got, what, advice_);
    offset_ += static_cast<std::int64_t>(got);
  }

  void expect_size(std::int64_t bytes, std::string_view why) override {
    require(file_.size >= bytes, "{}: truncated at offset {}: expected {} bytes ({}); {}", path_, file_.size, bytes,
            why, advice_);
    require(file_.size <= bytes, "{}: oversized: has {} bytes, expected {} ({}); {}", path_, file_.size, bytes, why,
            advice_);
  }

  void finish() override {
    std::uint8_t byte = 0;
    require(std::fread(&byte, 1, 1, file_.handle.get()) == 0,
            "{}: oversized: continues after offset {}, where it should end; {}", path_, offset_, advice_);
  }

 private:
  OpenFile file_;
};

}  // namespace

std::string path_text(const std::filesystem::path& path) {
  std::string text;
  for (const char byte : path.string()) {
    const auto code = static_cast<unsigned char>(byte);
    const bool controls = code < 0x20 || code == 0x7f;
    text += controls ? fmt::format("\\x{:02x}", code) : std::string(1, byte);
  }
  return text;
}

std::unique_ptr<ByteReader> open_bytes(const std::filesystem::path& path, std::string advice) {
  OpenFile file = open_regular(path, advice);
  std::uint8_t magic[2] = {};
  const bool gzip = std::fread(magic, 1, 2, file.handle.get()) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  require(gzip || path.extension() != ".gz", "{}: is not gzip: begins with {:#04x} {:#04x}, expected 0x1f 0x8b; {}",
          path_text(path), magic[0], magic[1], advice);
  require(std::fseek(file.handle.get(), 0, SEEK_SET) == 0, "{}: cannot be read from its beginning again; {}",
          path_text(path), advice);
  if (gzip) return detail::make_gzip_reader(path_text(path), std::move(advice), std::move(file.handle), file.size);
  return std::make_unique<PlainReader>(path_text(path), std::move(advice), std::move(file));
}

}  // namespace tandem::data
