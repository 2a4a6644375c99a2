// By way of /proc/PID/fd, which processes of the same user may open.
#include "tandem/comm/transports/shared_memory/file_handle.h"

#include "tandem/core/error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

namespace tandem::comm {

namespace {

std::string system_error_text(int code) { return std::system_category().message(code); }

/// This start of this machine, "" where the system does not say.
const std::string& machine_start() {
  static const std::string start = [] {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    file >> id;
    return id;
  }();
  return start;
}

/// Ranks in different containers may have the same process number: what tells these apart, or 0.
std::uint64_t process_namespace() {
  struct stat status{};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

}  // namespace

OwnedFile::~OwnedFile() {
  if (file_ >= 0) close(file_);
}

std::string handle_of_file(int file) {
  struct stat status{};
  require(fstat(file, &status) == 0, "shared memory: {}", system_error_text(errno));
  return fmt::format("{} {} {} {} {} {}", getpid(), process_namespace(), file, status.st_size, status.st_ino,
                     machine_start());
}

FileHandle parse_file_handle(const std::string& handle) {
  std::istringstream text(handle);
  FileHandle result;
  std::uint64_t name_space = 0;
  require(static_cast<bool>(text >> result.process >> name_space >> result.number >> result.bytes >> result.inode),
          "shared memory: '{}' is no handle", handle);
  std::string start;
  text >> start;
  require(start.empty() || machine_start().empty() || start == machine_start(),
          "shared memory: the ranks are on different machines");
  require(name_space == process_namespace(), "shared memory: the ranks are in containers that do not see each other");
  return result;
}

OwnedFile open_file(const FileHandle& handle) {
  const std::string path = fmt::format("/proc/{}/fd/{}", handle.process, handle.number);
  OwnedFile file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  require(file.get() >= 0, "shared memory: cannot open {}: {}", path, system_error_text(errno));
  struct stat status{};
  require(fstat(file.get(), &status) == 0 && status.st_ino == handle.inode && status.st_size == handle.bytes,
          "shared memory: {} is another file: the ranks do not see the same processes", path);
  return file;
}

}  // namespace tandem::comm
