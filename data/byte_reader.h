// Strict sequential reading of data files, plain or gzip: every error names the file, the offset and what was expected.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tandem::data {

/// Reads a file from its start to its end. Offsets count uncompressed bytes. All errors are tandem::Error and end with
/// the advice given to open_bytes().
class ByteReader {
 public:
  virtual ~ByteReader() = default;

  /// Fills `into`; throws if the file ends before. `what` names the contents, for the message.
  virtual void read(std::span<std::uint8_t> into, std::string_view what) = 0;

  /// Throws unless the file can hold exactly `bytes`. Call before allocating what a header promises: plain files are
  /// compared exactly, gzip files by the most that their compressed size can expand to. `why` says who expects it.
  virtual void expect_size(std::int64_t bytes, std::string_view why) = 0;

  /// Throws if anything is left to read, or a gzip checksum is wrong.
  virtual void finish() = 0;

  const std::string& path() const { return path_; }
  std::int64_t offset() const { return offset_; }
  const std::string& advice() const { return advice_; }

 protected:
  ByteReader(std::string path, std::string advice) : path_(std::move(path)), advice_(std::move(advice)) {}

  std::string path_, advice_;
  std::int64_t offset_ = 0;
};

/// A path for messages, which are one line: control characters become \xHH.
std::string path_text(const std::filesystem::path& path);

/// Opens a regular file; gzip is told by its first two bytes, and demanded of names ending in ".gz".
/// Throws if the file is missing, a directory or another special file, unreadable or empty.
std::unique_ptr<ByteReader> open_bytes(const std::filesystem::path& path, std::string advice);

}  // namespace tandem::data
