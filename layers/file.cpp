// Reading and writing through POSIX descriptors.
#include "tandem/layers/file.h"

#include "tandem/core/error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace tandem::layers {

namespace {

std::string text_of(int error) { return std::generic_category().message(error); }

/// What a path names that is not there: the end of its symbolic links, or itself.
std::filesystem::path end_of_links(const std::filesystem::path& path) {
  constexpr int kMostLinks = 40;
  std::filesystem::path end = path;
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(end, error); ++links) {
    require(links < kMostLinks, "{}: cannot write: too many symbolic links", path.string());
    end = end.parent_path() / std::filesystem::read_symlink(end, error);
  }
  return end;
}

constexpr std::string_view kCheckDisk = "look at the disk, or name another place";

constexpr std::int64_t kMostPerCall = 1 << 30;  // read and write take no more than 2 GiB at once

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not make us wait for a writer
  const int error = errno;
  require(descriptor_ >= 0, "{}: cannot open: {}; {}", path, text_of(error), remedy_of(error));
  struct stat status{};
  const bool known = ::fstat(descriptor_, &status) == 0;
  size_ = status.st_size;
  if (known && S_ISREG(status.st_mode)) return;
  ::close(descriptor_);
  fail("{}: {}", path,
       known && S_ISDIR(status.st_mode) ? "is a directory, not a file; name a file in it"
                                        : "is not a regular file; name one");
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(void* to, std::int64_t bytes, std::int64_t offset) const {
  std::int64_t done = 0;
  while (done < bytes) {
    const auto wanted = static_cast<std::size_t>(std::min(bytes - done, kMostPerCall));
    const ssize_t got = ::pread(descriptor_, static_cast<std::byte*>(to) + done, wanted, offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("{}: cannot read: {}; {}", path_, text_of(errno), remedy_of(errno));
    require(got > 0, "{}: truncated: it ends at byte {}, {} more are needed", path_, offset + done, bytes - done);
    done += got;
  }
}

std::string_view remedy_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return "check the path";
    case EACCES:
    case EPERM:
    case EROFS:
      return "ask for the right to do so, or name another place";
    case ENOSPC:
    case EDQUOT:
      return "free some space there, or name another place";
    case EFBIG:
      return "files may be no larger here, raise the limit (ulimit -f)";
    case EISDIR:
      return "name a file in it";
    case ENAMETOOLONG:
      return "take a shorter name";
    case EMFILE:
    case ENFILE:
      return "too many files are open, raise the limit (ulimit -n)";
    default:
      return kCheckDisk;
  }
}

int sync_directory(const std::string& path) {
  const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return errno;
  const int error = ::fsync(directory) == 0 ? 0 : errno;
  ::close(directory);
  return error == EINVAL ? 0 : error;
}

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(path) {
  require(!path.empty(), "cannot write a file without a name");
  std::error_code error;
  const std::filesystem::path resolved = std::filesystem::canonical(path, error);
  if (!error) {
    require(!std::filesystem::is_directory(resolved, error), "{}: cannot write: it is a directory; name a file in it",
            path);
    require(std::filesystem::is_regular_file(resolved, error),
            "{}: cannot write: it is not a regular file; name another", path);
    target_ = resolved.string();
  } else {
    target_ = end_of_links(path).string();
  }
  const std::filesystem::path parent = std::filesystem::path(target_).parent_path();
  directory_ = parent.empty() ? "." : parent.string();
  require(std::filesystem::is_directory(directory_, error),
          "{}: cannot write: there is no directory {}; make it, or name another", path, directory_);
  struct stat there{};
  if (::lstat(target_.c_str(), &there) != 0 && errno != ENOENT) fail_with_errno(errno);  // such as too long a name
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    temporary_ = fmt::format("{}/.tandem-{}-{}.tmp", directory_, ::getpid(), attempt);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0 || errno == EEXIST) continue;
    const int reason = errno;
    temporary_.clear();
    fail_with_errno(reason);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* from, std::int64_t bytes) {
  std::int64_t done = 0;
  while (done < bytes) {
    const auto wanted = static_cast<std::size_t>(std::min(bytes - done, kMostPerCall));
    const ssize_t put = ::write(descriptor_, static_cast<const std::byte*>(from) + done, wanted);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_with_errno(errno);
    done += put;
    written_ += put;
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail_with_errno(errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) fail_with_errno(errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_with_errno(errno);
  temporary_.clear();
  // The new name is on disk only when its directory is.
  if (const int error = sync_directory(directory_); error != 0) fail_with_errno(error);
}

void AtomicFile::fail_with_errno(int error) const {
  const std::string after = written_ == 0 ? "" : fmt::format(" (after {} bytes)", written_);
  fail("{}: cannot write: {}{}; {}", path_, text_of(error), after, remedy_of(error));
}

}  // namespace tandem::layers
