// Device windows whose groups have ended, until nobody has them open.
#pragma once

#include "tandem/comm/transports/cuda_ipc/device_window.h"
#include "tandem/comm/transports/shared_memory/shared_memory.h"
#include "tandem/core/stream.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace tandem::comm {

/// While it is there, a stream of this process may wait for other ranks: cudaFree() would wait for that stream.
class StreamAtWork {
 public:
  StreamAtWork() { count().fetch_add(1, std::memory_order_relaxed); }
  ~StreamAtWork() { count().fetch_sub(1, std::memory_order_relaxed); }
  StreamAtWork(const StreamAtWork&) = delete;
  StreamAtWork& operator=(const StreamAtWork&) = delete;

  /// Whether there is one in this process.
  static bool exists() { return count().load(std::memory_order_relaxed) != 0; }

 private:
  static std::atomic<int>& count();
};

/// What a group leaves.
struct ParkedWindow {
  std::unique_ptr<DeviceWindow> window;
  std::vector<Event> ends = {};                  ///< of what the stream has yet to do
  std::vector<std::shared_ptr<void>> kept = {};  ///< until then
  std::unique_ptr<StreamAtWork> at_work = {};    ///< until then
  std::shared_ptr<SharedMemory> memory;          ///< which has the following
  std::atomic<bool>* has_closed = nullptr;       ///< this rank has given the others' memory back
  std::vector<const std::atomic<bool>*> others_have_closed = {};
};

/// Closes it when its stream has done everything, and frees it when all others have closed theirs and no stream is at
/// work: this and later calls of the following look after it. Nobody waits.
void park(ParkedWindow window);

/// Looks whether any can be closed or freed. How many are left.
std::size_t look_after_parked_windows();

}  // namespace tandem::comm
