// Files by descriptor: reading exactly, and writing so that a file appears whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::layers {

/// A regular file, open for reading. Errors begin with its path.
class InputFile {
 public:
  /// Throws Error where there is no such file, and for directories, pipes and devices.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::int64_t size() const { return size_; }

  /// Reads `bytes` bytes from `offset`; throws if the file ends before.
  void read(void* to, std::int64_t bytes, std::int64_t offset) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

/// What to do where the system refuses to open, read or write a file with an error of this number (errno).
std::string_view remedy_of(int error);

/// Brings the names in a folder to disk. Returns the number of the error, 0 for none: some file systems cannot do this
/// for folders, which is none.
int sync_directory(const std::string& path);

/// Writes a temporary file next to `path`, which commit() puts in its place, on disk. Destroyed without commit(), it
/// leaves everything as it was. Symbolic links are followed, also to what is not there yet; anything that is not a
/// regular file is refused.
/// The temporary file is held by a lock for as long as this lives, so that remove_abandoned_files() leaves it alone.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* from, std::int64_t bytes);
  void commit();

 private:
  bool make_temporary(int attempt);
  [[noreturn]] void fail_with_errno(int error) const;

  std::string path_, target_, directory_, temporary_;
  int descriptor_ = -1;
  std::int64_t written_ = 0;
};

/// Writes a file by AtomicFile: whole, or, throwing Error, not at all.
void write_file(const std::string& path, std::string_view text);

/// Removes the temporary files that AtomicFile left in a folder when its processes were killed, and no others: one that
/// a live process writes is held by its lock, or, where the file system knows none, named after a live process. Of a
/// folder that cannot be read, or files that cannot be removed, nothing is said. Returns how many are gone.
std::int64_t remove_abandoned_files(const std::string& folder);

}  // namespace tandem::layers
