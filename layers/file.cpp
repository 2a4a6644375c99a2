// Reading and writing through POSIX descriptors.
#include "tandem/layers/file.h"

#include "tandem/core/error.h"

#include <fcntl.h>
#include <sys/file.h>  // flock
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

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

constexpr std::string_view kTemporaryPrefix = ".tandem-", kTemporarySuffix = ".tmp";

/// The process that a temporary file is named after; nothing for other names than .tandem-PROCESS-NUMBER.tmp.
std::optional<pid_t> process_of(std::string_view name) {
  if (!name.starts_with(kTemporaryPrefix) || !name.ends_with(kTemporarySuffix)) return std::nullopt;
  const char* const end = name.data() + name.size() - kTemporarySuffix.size();
  pid_t process = 0;
  int number = 0;
  const auto [dash, no_process] = std::from_chars(name.data() + kTemporaryPrefix.size(), end, process);
  if (no_process != std::errc() || process <= 0 || dash == end || *dash != '-') return std::nullopt;
  const auto [rest, no_number] = std::from_chars(dash + 1, end, number);
  if (no_number != std::errc() || rest != end) return std::nullopt;
  return process;
}

/// Removes a temporary file, unless a process still writes it. True if it is gone.
bool remove_abandoned(const std::string& path, pid_t process) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return false;
  const int error = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  const bool has_no_locks = error != 0 && error != EWOULDBLOCK;
  const bool is_abandoned = error == 0 || (has_no_locks && ::kill(process, 0) != 0 && errno == ESRCH);
  const bool is_gone = is_abandoned && ::unlink(path.c_str()) == 0;
  ::close(descriptor);  // only now does the lock end: nobody can have taken it for his own meanwhile
  return is_gone;
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
  for (int attempt = 0; !make_temporary(attempt); ++attempt) {
  }
}

/// False where that name is taken, or was taken for abandoned before it could be locked.
bool AtomicFile::make_temporary(int attempt) {
  temporary_ = fmt::format("{}/{}{}-{}{}", directory_, kTemporaryPrefix, ::getpid(), attempt, kTemporarySuffix);
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    const int reason = errno;
    temporary_.clear();
    if (reason != EEXIST) fail_with_errno(reason);
    return false;
  }
  const bool is_held = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  struct stat status{};
  if (is_held && ::fstat(descriptor_, &status) == 0 && status.st_nlink > 0) return true;
  ::close(std::exchange(descriptor_, -1));
  temporary_.clear();  // somebody else is removing it
  return false;
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

void write_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text.data(), static_cast<std::int64_t>(text.size()));
  file.commit();
}

std::int64_t remove_abandoned_files(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  return std::count_if(names.begin(), names.end(), [&](const std::string& name) {
    const std::string path = (fs::path(folder) / name).string();
    const std::optional<pid_t> process = process_of(name);
    std::error_code unknown;
    return process && fs::is_regular_file(fs::symlink_status(path, unknown)) && remove_abandoned(path, *process);
  });
}

void AtomicFile::fail_with_errno(int error) const {
  const std::string after = written_ == 0 ? "" : fmt::format(" (after {} bytes)", written_);
  fail("{}: cannot write: {}{}; {}", path_, text_of(error), after, remedy_of(error));
}

}  // namespace tandem::layers
