// gzip through zlib's inflate; several members in one file follow each other, as with gunzip.
#include "tandem/data/gzip_reader.h"

#include "tandem/core/error.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace tandem::data::detail {

namespace {

constexpr std::int64_t kMaxCompressedBytes = std::int64_t{1} << 30;
constexpr std::int64_t kMaxExpansion = 1032;  // what deflate reaches at most (zlib's technical notes)
/// Images shrink to a half or a fifth: what unpacks to far more is made to fill the memory.
constexpr std::int64_t kUsualExpansion = 100, kAnyExpansionBytes = std::int64_t{64} << 20;
constexpr int kGzipOnly = MAX_WBITS + 16;

class GzipReader final : public ByteReader {
 public:
  GzipReader(std::string path, std::string advice, std::vector<std::uint8_t> compressed)
      : ByteReader(std::move(path), std::move(advice)), compressed_(std::move(compressed)) {
    stream_.next_in = compressed_.data();
    stream_.avail_in = static_cast<uInt>(compressed_.size());
    require(inflateInit2(&stream_, kGzipOnly) == Z_OK, "{}: zlib cannot start: out of memory", path_);
  }
  ~GzipReader() override { inflateEnd(&stream_); }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  void read(std::span<std::uint8_t> into, std::string_view what) override {
    while (!into.empty()) {
      const std::size_t got = inflate_some(into);
      require(got > 0, "{}: truncated at offset {} of its contents: expected {} more bytes of {}; {}", path_, offset_,
              into.size(), what, advice_);
      into = into.subspan(got);
    }
  }

  void expect_size(std::int64_t bytes, std::string_view why) override {
    const auto size = static_cast<std::int64_t>(compressed_.size());
    require(bytes <= size * kMaxExpansion, "{}: {} compressed bytes cannot hold the expected {} bytes ({}); {}", path_,
            size, bytes, why, advice_);
    require(bytes <= std::max(kAnyExpansionBytes, size * kUsualExpansion),
            "{}: {} compressed bytes are said to hold {} ({}), more than {} times as many, as no data set does; {}",
            path_, size, bytes, why, kUsualExpansion, advice_);
  }

  void finish() override {
    std::uint8_t byte = 0;
    const std::int64_t end = offset_;
    require(inflate_some({&byte, 1}) == 0,
            "{}: oversized: its contents continue after offset {}, where they should end; {}", path_, end, advice_);
  }

 private:
  /// At least one byte, or 0 at the end of the last member.
  std::size_t inflate_some(std::span<std::uint8_t> into) {
    const std::size_t wanted = std::min<std::size_t>(into.size(), std::numeric_limits<uInt>::max() / 2);
    stream_.next_out = into.data();
    stream_.avail_out = static_cast<uInt>(wanted);
    while (stream_.avail_out == wanted && !(at_member_end_ && stream_.avail_in == 0)) {
      if (at_member_end_) {
        inflateReset(&stream_);
        at_member_end_ = false;
      }
      const int status = inflate(&stream_, Z_NO_FLUSH);
      at_member_end_ = status == Z_STREAM_END;
      const auto position = static_cast<std::int64_t>(compressed_.size() - stream_.avail_in);
      require(status != Z_BUF_ERROR, "{}: gzip data truncated at compressed offset {} (contents offset {}); {}", path_,
              position, offset_, advice_);
      require(status == Z_OK || at_member_end_, "{}: gzip data damaged at compressed offset {}: {}; {}", path_,
              position, stream_.msg != nullptr ? stream_.msg : zError(status), advice_);
    }
    const std::size_t got = wanted - stream_.avail_out;
    offset_ += static_cast<std::int64_t>(got);
    return got;
  }

  std::vector<std::uint8_t> compressed_;
  z_stream stream_{};
  bool at_member_end_ = false;
};

}  // namespace

std::unique_ptr<ByteReader> make_gzip_reader(std::string path, std::string advice, FileHandle file, std::int64_t size) {
  require(size <= kMaxCompressedBytes, "{}: {} bytes of gzip are more than any data set here ({}); {}", path, size,
          kMaxCompressedBytes, advice);
  std::vector<std::uint8_t> compressed(static_cast<std::size_t>(size));
  const std::size_t got = std::fread(compressed.data(), 1, compressed.size(), file.get());
  require(got == compressed.size(), "{}: cannot be read at offset {}; {}", path, got, advice);
  return std::make_unique<GzipReader>(std::move(path), std::move(advice), std::move(compressed));
}

}  // namespace tandem::data::detail
