// Memory that all ranks of one host see.
#pragma once

#include "tandem/comm/backends/backend.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tandem::comm {

/// A part of some memory.
struct ByteRange {
  std::int64_t begin = 0, bytes = 0;
};

/// Memory of one process that others have mapped as well, or that threads of one process share. No name in any file
/// system is left behind, and the size of /dev/shm does not limit it. It goes with the last mapping.
class SharedMemory {
 public:
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// On a page's boundary.
  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

  /// New, filled with zeros. Pages of `own`, this rank's part, are taken at once, others when they are first written.
  /// `name`: of its file in /proc/PID/fd. Throws Error where the system has not so much left.
  static std::shared_ptr<SharedMemory> create(std::int64_t bytes, ByteRange own = {}, const char* name = "tandem");
  /// How open() finds it, from any process of this host, until seal().
  std::string handle() const;
  /// The memory of create(), mapped here too; within the process that made it, the same mapping. Takes pages as
  /// create() does. `keeps_file`: it can be found in this process's /proc/PID/fd, too, until seal(). Throws Error where
  /// it cannot be had.
  static std::shared_ptr<SharedMemory> open(const std::string& handle, ByteRange own = {}, bool keeps_file = false);
  /// Nobody is to open it any more.
  void seal();

  /// Keeps something for as long as this mapping is there: what other threads that have it may still look at.
  void keep(std::shared_ptr<const void> thing);

 private:
  SharedMemory(int file, std::byte* data, std::int64_t bytes) : file_(file), data_(data), bytes_(bytes) {}

  [[maybe_unused]] int file_;  // below 0: sealed, or opened
  std::byte* data_;
  std::int64_t bytes_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const void>> kept_;
};

/// Memory that all ranks see, or null and the same reason on all.
struct SharedByRanks {
  std::shared_ptr<SharedMemory> memory;
  std::string obstacle;
};

/// How ranks come to share memory.
struct SharingOptions {
  int maker = 0;                ///< the rank that makes it, among those on this rank's host
  const char* name = "tandem";  ///< as of SharedMemory::create()
  bool keeps_file = false;      ///< whoever looks for it finds it in each of these processes, until its end
};

/// Makes memory of equal parts for all ranks on one of each host, and maps it on the others; each takes the pages of
/// its own part at once. Collective over the backend.
SharedByRanks share_memory(Backend& backend, std::int64_t part_bytes, const SharingOptions& options = {});

}  // namespace tandem::comm
