// The framing of event files: records with their length and checksums.
// Source: tensorflow/core/lib/io/record_writer.h
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tandem::train::detail {

/// CRC-32C as records have it: turned by 15 bits, and a constant added, so that the checksum of data that holds
/// checksums is as good as any.
std::uint32_t masked_crc32c(std::string_view data);

/// A file of records: u64 length, u32 masked CRC-32C of the length, data, u32 masked CRC-32C of the data; all
/// little-endian. Records wait in memory until flush(). Errors begin with the file's path.
class EventFile {
 public:
  /// A new file in `folder`, named events.out.tfevents.SECONDS.HOST.PROCESS. Readers take files in the order of their
  /// names, so SECONDS (since 1970) is later than that of any file there. Throws Error.
  static EventFile in(const std::string& folder);

  /// Writes behind what `descriptor` has, and closes it at the end.
  EventFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  ~EventFile();
  EventFile(EventFile&& other) noexcept;
  EventFile& operator=(EventFile&& other) noexcept;

  void add(std::string_view record);

  /// Throws Error where not all can be written, as on a full disk. The file then ends with the last flush() that was
  /// complete, what was waiting is dropped, and later records can follow.
  void flush();

  void drop_waiting();

  /// Takes over what waits in another file.
  void take_waiting(EventFile& other);

  /// Whether the file has no name any more: somebody removed it.
  bool is_removed() const;

  std::int64_t waiting_records() const { return waiting_records_; }
  std::int64_t waiting_bytes() const { return static_cast<std::int64_t>(waiting_.size()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int descriptor_;
  std::string waiting_;
  std::int64_t waiting_records_ = 0;
};

}  // namespace tandem::train::detail
