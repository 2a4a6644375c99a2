// Memory files (memfd_create), which other processes of the same user open by way of /proc/PID/fd; and processes that
// end (pidfd_open).
#include "tandem/comm/transports/shared_memory/shared_memory.h"
#include "tandem/core/error.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <sstream>
#include <system_error>
#include <utility>

namespace tandem::comm {

namespace {

std::string system_error_text(int code) { return std::system_category().message(code); }

/// What ranks that are threads of this process find each other's memory by: its file.
class MappedHere {
 public:
  void add(int file, const std::shared_ptr<SharedMemory>& memory) {
    const std::lock_guard lock(mutex_);
    memories_[file] = memory;
  }
  void remove(int file) {
    const std::lock_guard lock(mutex_);
    memories_.erase(file);
  }
  std::shared_ptr<SharedMemory> find(int file) {
    const std::lock_guard lock(mutex_);
    const auto found = memories_.find(file);
    return found == memories_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::map<int, std::weak_ptr<SharedMemory>> memories_;
};

MappedHere& mapped_here() {
  static MappedHere& all = *new MappedHere;  // never destroyed: memory may outlive it
  return all;
}

std::byte* map_file(int file, std::int64_t bytes) {
  void* const mapped = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  require(mapped != MAP_FAILED, "shared memory: cannot map {} bytes: {}", bytes, system_error_text(errno));
  return static_cast<std::byte*>(mapped);
}

std::int64_t number_in(const char* path, std::int64_t otherwise) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number ? number : otherwise;
}

/// Bytes that count as used but go when others are needed: files that were read, and the system's own caches.
std::int64_t reclaimable_in(const char* path) {
  std::ifstream file(path);
  std::string name;
  std::int64_t bytes = 0, sum = 0;
  while (file >> name >> bytes)
    if (name == "inactive_file" || name == "active_file" || name == "slab_reclaimable") sum += bytes;
  return sum;
}

/// What the machine has left, and what this container may take of it.
std::int64_t available_memory() {
  constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  std::int64_t available = kUnlimited;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("MemAvailable:")) available = std::stoll(line.substr(line.find(':') + 1)) * 1024;
  const std::int64_t limit = number_in("/sys/fs/cgroup/memory.max", kUnlimited);
  const std::int64_t used =
      number_in("/sys/fs/cgroup/memory.current", 0) - reclaimable_in("/sys/fs/cgroup/memory.stat");
  return std::min(available, limit - std::max<std::int64_t>(used, 0));
}

/// Ranks in different containers may have the same process number: what tells these apart, or 0.
std::uint64_t process_namespace() {
  struct stat status{};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

/// Closes a file unless it is taken.
class OwnedFile {
 public:
  explicit OwnedFile(int file) : file_(file) {}
  ~OwnedFile() {
    if (file_ >= 0) close(file_);
  }
  OwnedFile(const OwnedFile&) = delete;
  OwnedFile& operator=(const OwnedFile&) = delete;
  int get() const { return file_; }
  int take() { return std::exchange(file_, -1); }

 private:
  int file_;
};

}  // namespace

SharedMemory::~SharedMemory() {
  seal();
  munmap(data_, static_cast<std::size_t>(bytes_));
}

std::shared_ptr<SharedMemory> SharedMemory::create(std::int64_t bytes) {
  OwnedFile file(memfd_create("tandem", MFD_CLOEXEC));
  require(file.get() >= 0, "shared memory: memfd_create: {}", system_error_text(errno));
  // A memory file has no limit of its own: the system would look for pages until it ends processes.
  const std::int64_t available = available_memory();
  require(bytes <= available, "shared memory: {} bytes, and {} are available", bytes, available);
  rlimit limit{};  // beyond it, ftruncate() would end the process by a signal
  require(getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
              static_cast<rlim_t>(bytes) <= limit.rlim_cur,
          "shared memory: {} bytes, and files may have {} (ulimit -f)", bytes, limit.rlim_cur);
  require(ftruncate(file.get(), bytes) == 0, "shared memory: {} bytes: {}", bytes, system_error_text(errno));
  std::byte* const data = map_file(file.get(), bytes);
  std::shared_ptr<SharedMemory> memory(new SharedMemory(file.take(), data, bytes));
  mapped_here().add(memory->file_, memory);
  return memory;
}

std::string SharedMemory::handle() const {
  struct stat status{};
  require(fstat(file_, &status) == 0, "shared memory: {}", system_error_text(errno));
  return fmt::format("{} {} {} {} {}", getpid(), process_namespace(), file_, bytes_, status.st_ino);
}

std::shared_ptr<SharedMemory> SharedMemory::open(const std::string& handle) {
  std::istringstream text(handle);
  std::int64_t process = 0, bytes = 0;
  std::uint64_t name_space = 0, inode = 0;
  int number = 0;
  require(static_cast<bool>(text >> process >> name_space >> number >> bytes >> inode),
          "shared memory: '{}' is no handle", handle);
  require(name_space == process_namespace(), "shared memory: the ranks are in containers that do not see each other");
  if (process == getpid()) {
    auto memory = mapped_here().find(number);
    require(memory != nullptr, "shared memory: file {} of this process is closed", number);
    return memory;
  }
  const std::string path = fmt::format("/proc/{}/fd/{}", process, number);
  OwnedFile file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  require(file.get() >= 0, "shared memory: cannot open {}: {}", path, system_error_text(errno));
  struct stat status{};
  require(fstat(file.get(), &status) == 0 && status.st_ino == inode && status.st_size == bytes,
          "shared memory: {} is another file: the ranks do not see the same processes", path);
  return std::shared_ptr<SharedMemory>(new SharedMemory(-1, map_file(file.get(), bytes), bytes));
}

void SharedMemory::seal() {
  if (file_ < 0) return;
  mapped_here().remove(file_);
  close(std::exchange(file_, -1));
}

PeerProcesses::~PeerProcesses() {
  for (const Peer& peer : peers_)
    if (peer.file >= 0) close(peer.file);
}

void PeerProcesses::exchange(Backend& backend) {
  for (const std::string& text : backend.all_gather_bytes(std::to_string(getpid()))) {
    const std::int64_t process = std::stoll(text);
    const bool is_this = process == getpid();
    peers_.push_back({process, is_this ? -1 : static_cast<int>(syscall(SYS_pidfd_open, process, 0))});
  }
}

bool PeerProcesses::has_ended(int rank) const {
  const Peer& peer = peers_[static_cast<std::size_t>(rank)];
  pollfd look{.fd = peer.file, .events = POLLIN, .revents = 0};
  return peer.file >= 0 && poll(&look, 1, 0) == 1;
}

}  // namespace tandem::comm
