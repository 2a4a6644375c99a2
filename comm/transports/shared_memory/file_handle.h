// How a process of the host finds a memory file of another one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace tandem::comm {

/// A file that is open here, closed at its end.
class OwnedFile {
 public:
  explicit OwnedFile(int file = -1) : file_(file) {}
  ~OwnedFile();
  OwnedFile(OwnedFile&& other) noexcept : file_(other.take()) {}
  OwnedFile& operator=(OwnedFile&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }

  int get() const { return file_; }
  /// For who closes it.
  int take() { return std::exchange(file_, -1); }

 private:
  int file_;
};

/// A memory file of a process.
struct FileHandle {
  std::int64_t process = 0;
  int number = 0;  ///< of the file, in that process
  std::int64_t bytes = 0;
  std::uint64_t inode = 0;
};

/// For parse_file_handle() in any process of this host, as long as this one has the file open.
std::string handle_of_file(int file);
/// Throws Error where the text is none, or is of a process that this one cannot see.
FileHandle parse_file_handle(const std::string& text);
/// Opens another process's file, to be read and written. Throws Error where it cannot be had.
OwnedFile open_file(const FileHandle& handle);

}  // namespace tandem::comm
