// Memory files (memfd_create), which other processes of the same user open by way of /proc/PID/fd.
#include "tandem/comm/transports/shared_memory/available_memory.h"
#include "tandem/comm/transports/shared_memory/file_handle.h"
#include "tandem/comm/transports/shared_memory/shared_memory.h"
#include "tandem/core/error.h"
#include "tandem/core/memory_file.h"
#include "tandem/core/page_block.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
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

/// From here on memory has large pages where the system has them.
constexpr std::int64_t kLarge = std::int64_t{4} << 20;

std::byte* map_file(int file, std::int64_t bytes) {
  const FileRange whole{0, round_up(bytes, 4096)};
  std::byte* const mapped = map_file_ranges(file, {&whole, 1});
  require(mapped != nullptr, "shared memory: cannot map {} bytes: {}", bytes, system_error_text(errno));
  if (bytes >= kLarge) madvise(mapped, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
  return mapped;
}

/// As large ones, as far as the system has these.
void populate(std::byte* start, std::int64_t bytes) {
  if (bytes < kLarge) return;
#if defined(MADV_POPULATE_WRITE)
  constexpr int kPopulate = MADV_POPULATE_WRITE;
#else
  constexpr int kPopulate = 23;  // its number since Linux 5.14
#endif
  madvise(start, static_cast<std::size_t>(bytes), kPopulate);
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
  std::byte* const data = map_file(file.get(), bytes);
  std::shared_ptr<SharedMemory> memory(new SharedMemory(file.take(), data, bytes));
  populate(data + own.begin, own.bytes);
  take_pages(memory->file_, own);
  mapped_here().add(memory->file_, memory);
  return memory;
}

std::string SharedMemory::handle() const { return handle_of_file(file_); }

std::shared_ptr<SharedMemory> SharedMemory::open(const std::string& handle, ByteRange own, bool keeps_file) {
  const FileHandle found = parse_file_handle(handle);
  if (found.process == getpid()) {
    auto memory = mapped_here().find(found.number);
    require(memory != nullptr, "shared memory: file {} of this process is closed", found.number);
    take_pages(found.number, own);
    return memory;
  }
  OwnedFile file = open_file(found);
  std::byte* const data = map_file(file.get(), found.bytes);
  std::shared_ptr<SharedMemory> memory(new SharedMemory(-1, data, found.bytes));
  populate(data + own.begin, own.bytes);
  take_pages(file.get(), own);
  if (keeps_file) memory->file_ = file.take();
  return memory;
}

void SharedMemory::seal() {
  if (file_ < 0) return;
  mapped_here().remove(file_);
  close(std::exchange(file_, -1));
}

}  // namespace tandem::comm
