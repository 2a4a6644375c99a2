// Memory files (memfd_create), which other processes of the same user open by way of /proc/PID/fd.
#include "tandem/comm/transports/shared_memory/available_memory.h"
#include "tandem/comm/transports/shared_memory/shared_memory.h"
#include "tandem/core/error.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
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

/// A memory file that holds no program: a system may allow no other ones. Older systems do not know the wish.
int make_memory_file(const char* name) {
#if defined(MFD_NOEXEC_SEAL)
  constexpr unsigned kNoProgram = MFD_NOEXEC_SEAL;
#else
  constexpr unsigned kNoProgram = 0x0008U;  // its number since Linux 6.3
#endif
  const int file = memfd_create(name, MFD_CLOEXEC | kNoProgram);
  return file >= 0 || errno != EINVAL ? file : memfd_create(name, MFD_CLOEXEC);
}

/// Takes pages now: where the system has none left, that is an error here, and a signal when they are first written.
void take_pages(int file, ByteRange range) {
  // By pieces: a signal, as a profiler's timer sends many, may make the system begin a piece anew.
  constexpr std::int64_t kPiece = std::int64_t{4} << 20;
  for (std::int64_t done = 0; done < range.bytes;) {
    const std::int64_t piece = std::min(kPiece, range.bytes - done);
    const int code = fallocate(file, 0, range.begin + done, piece) == 0 ? 0 : errno;
    require(code == 0 || code == EINTR, "shared memory: the system gives no pages for {} bytes: {}", range.bytes,
            system_error_text(code));
    if (code == 0) done += piece;
  }
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

std::shared_ptr<SharedMemory> SharedMemory::create(std::int64_t bytes, ByteRange own, const char* name) {
  OwnedFile file(make_memory_file(name));
  require(file.get() >= 0, "shared memory: memfd_create: {}", system_error_text(errno));
  // A memory file has no limit of its own: the system would look for pages until it ends processes.
  const std::int64_t available = available_memory();
  require(bytes <= available, "shared memory: {} bytes, and {} are available", bytes, available);
  rlimit limit{};  // beyond it, ftruncate() would end the process by a signal
  require(getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
              static_cast<rlim_t>(bytes) <= limit.rlim_cur,
          "shared memory: {} bytes, and files may have {} (ulimit -f)", bytes, limit.rlim_cur);
  require(ftruncate(file.get(), bytes) == 0, "shared memory: {} bytes: {}", bytes, system_error_text(errno));
  take_pages(file.get(), own);
  std::byte* const data = map_file(file.get(), bytes);
  std::shared_ptr<SharedMemory> memory(new SharedMemory(file.take(), data, bytes));
  mapped_here().add(memory->file_, memory);
  return memory;
}

std::string SharedMemory::handle() const {
  struct stat status{};
  require(fstat(file_, &status) == 0, "shared memory: {}", system_error_text(errno));
  return fmt::format("{} {} {} {} {} {}", getpid(), process_namespace(), file_, bytes_, status.st_ino, machine_start());
}

std::shared_ptr<SharedMemory> SharedMemory::open(const std::string& handle, ByteRange own, bool keeps_file) {
  std::istringstream text(handle);
  std::int64_t process = 0, bytes = 0;
  std::uint64_t name_space = 0, inode = 0;
  int number = 0;
  require(static_cast<bool>(text >> process >> name_space >> number >> bytes >> inode),
          "shared memory: '{}' is no handle", handle);
  std::string start;
  text >> start;
  require(start.empty() || machine_start().empty() || start == machine_start(),
          "shared memory: the ranks are on different machines");
  require(name_space == process_namespace(), "shared memory: the ranks are in containers that do not see each other");
  if (process == getpid()) {
    auto memory = mapped_here().find(number);
    require(memory != nullptr, "shared memory: file {} of this process is closed", number);
    take_pages(number, own);
    return memory;
  }
  const std::string path = fmt::format("/proc/{}/fd/{}", process, number);
  OwnedFile file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  require(file.get() >= 0, "shared memory: cannot open {}: {}", path, system_error_text(errno));
  struct stat status{};
  require(fstat(file.get(), &status) == 0 && status.st_ino == inode && status.st_size == bytes,
          "shared memory: {} is another file: the ranks do not see the same processes", path);
  take_pages(file.get(), own);
  std::byte* const data = map_file(file.get(), bytes);
  return std::shared_ptr<SharedMemory>(new SharedMemory(keeps_file ? file.take() : -1, data, bytes));
}

void SharedMemory::seal() {
  if (file_ < 0) return;
  mapped_here().remove(file_);
  close(std::exchange(file_, -1));
}

}  // namespace tandem::comm
