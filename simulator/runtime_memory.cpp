// The simulated CUDA runtime: allocation.
#include "tandem/simulator/capture.h"
#include "tandem/simulator/device_memory.h"
#include "tandem/simulator/fault.h"
#include "tandem/simulator/ipc.h"
#include "tandem/simulator/planned_failures.h"
#include "tandem/simulator/runtime.h"
#include "tandem/simulator/settings.h"
#include "tandem/simulator/shadow.h"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <vector>

namespace tandem::simulator {

namespace {

std::map<const char*, std::size_t>& pinned_blocks() {
  static std::map<const char*, std::size_t> blocks;
  return blocks;
}

/// CUDA says nothing of what happens then to those that still read it.
void check_open_elsewhere(void* start) {
  if (const int times = take_back_export(start); times > 0)
    fail_work(FaultKind::out_of_bounds,
              fmt::format("{} is freed while it is open {} times in other processes: cudaIpcCloseMemHandle comes first",
                          describe_device_address(reinterpret_cast<std::uintptr_t>(start)), times));
}

/// What a memory pool says of itself. Memory is really given back at once; what it would have kept is only counted.
struct Pool {
  std::uint64_t release_threshold = 0, reserved = 0;
};

Pool& pool_of(cudaMemPool_t pool) {
  static std::map<cudaMemPool_t, Pool> pools;
  return pools[pool];
}

cudaMemPool_t pool_of_device(int device) {
  return reinterpret_cast<cudaMemPool_t>(static_cast<std::uintptr_t>(device) + 1);
}

std::uint64_t used_bytes(cudaMemPool_t pool) {
  return settings().memory_bytes - free_device_bytes(static_cast<int>(reinterpret_cast<std::uintptr_t>(pool)) - 1);
}

/// Called when the pool has shrunk.
void keep_in_pool(int device, std::uint64_t used_before) {
  Pool& pool = pool_of(pool_of_device(device));
  pool.reserved = std::max(pool.reserved, std::min(used_before, pool.release_threshold));
}

cudaError_t allocate(void** start, std::size_t bytes, bool whole_pages = false) {
  if (!device_exists(current_device())) return note(cudaErrorNoDevice);
  if (bytes == 0) {
    *start = nullptr;
    return cudaSuccess;
  }
  const std::lock_guard lock(runtime_mutex());
  *start =
      whole_pages ? allocate_whole_pages(current_device(), bytes) : allocate_device_memory(current_device(), bytes);
  return note(*start == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

}  // namespace

bool is_pinned(const void* address) {
  const std::lock_guard lock(runtime_mutex());
  auto next = pinned_blocks().upper_bound(static_cast<const char*>(address));
  if (next == pinned_blocks().begin()) return false;
  --next;
  return static_cast<const char*>(address) < next->first + next->second;
}

}  // namespace tandem::simulator

using namespace tandem::simulator;

void tandem::simulator::overwrite_memory(void* start, std::size_t bytes, unsigned char value) {
  const std::lock_guard lock(runtime_mutex());
  timeline().synchronize_all();
  if (!is_device_address(start)) {
    std::memset(start, value, bytes);
    return;
  }
  if (bytes_from(start) < bytes)
    throw std::out_of_range("simulator: overwrite_memory() beyond the end of an allocation");
  const DeviceAccess access;
  std::memset(start, value, bytes);
  if constexpr (kChecksMemory)
    global_shadow().set(reinterpret_cast<std::uintptr_t>(start), bytes, Stamp::kUninitialised);
}

void tandem::simulator::overwrite_pinned_memory(unsigned char value) {
  const std::lock_guard lock(runtime_mutex());
  timeline().synchronize_all();
  for (const auto& [start, bytes] : pinned_blocks()) std::memset(const_cast<char*>(start), value, bytes);
}

cudaError_t cudaMalloc(void** start, std::size_t bytes) {
  const std::lock_guard lock(runtime_mutex());
  if (const cudaError_t status = check_waiting("cudaMalloc", 0); status != cudaSuccess) return note(status);
  return allocate(start, bytes, true);
}

cudaError_t cudaMallocManaged(void** start, std::size_t bytes, unsigned) {
  if (!device_exists(current_device())) return note(cudaErrorNoDevice);
  const std::lock_guard lock(runtime_mutex());
  if (const cudaError_t status = check_waiting("cudaMallocManaged", 0); status != cudaSuccess) return note(status);
  *start = allocate_managed_memory(current_device(), bytes);
  return note(*start == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaMallocAsync(void** start, std::size_t bytes, cudaStream_t stream, TandemWhere where) {
  const std::lock_guard lock(runtime_mutex());
  StreamState& state = state_of(stream);
  if (const cudaError_t status = check_stream(state, "cudaMallocAsync", site_id(where)); status != cudaSuccess)
    return note(status);
  if (state.capture != nullptr && bytes > 0) {
    *start = take_for_graph(state, bytes, site_id(where));
    return note(*start == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
  }
  const cudaError_t first_try = allocate(start, bytes);
  if (first_try != cudaErrorMemoryAllocation) return first_try;
  cudaGetLastError();
  cudaStreamSynchronize(stream);  // memory that is to be freed first may do
  return allocate(start, bytes);
}

cudaError_t cudaFreeAsync(void* start, cudaStream_t stream, TandemWhere where) {
  if (start == nullptr) return cudaSuccess;
  const std::lock_guard lock(runtime_mutex());
  const SiteId site = site_id(where);
  StreamState& state = state_of(stream);
  if (const cudaError_t status = check_stream(state, "cudaFreeAsync", site); status != cudaSuccess) return note(status);
  if (state.capture != nullptr) return note(free_in_graph(state, start, site));
  if (allocation_bytes(start) == 0 || is_imported(start)) return note(cudaErrorInvalidValue);
  if (GraphBlock* const block = graph_block(start); block != nullptr) {
    if (!block->live) return note(cudaErrorInvalidValue);
    block->live = false;
    timeline().enqueue(state, "cudaFreeAsync", site, [start, graph = block->graph.lock()] {
      check_order_of_free(start);
      retire_device_memory(start);
    });
    return cudaSuccess;
  }
  timeline().enqueue(state, "cudaFreeAsync", site, [start] {
    check_order_of_free(start);
    check_open_elsewhere(start);
    keep_in_pool(device_of(start), used_bytes(pool_of_device(device_of(start))));
    free_device_memory(start);
  });
  return cudaSuccess;
}

cudaError_t cudaFree(void* start, TandemWhere where) {
  if (start == nullptr) return cudaSuccess;
  const std::lock_guard lock(runtime_mutex());
  if (const cudaError_t status = check_waiting("cudaFree", site_id(where)); status != cudaSuccess) return note(status);
  ++runtime_counts().stream_waits;
  timeline().synchronize_all();
  const cudaError_t status = cudaFreeAsync(start, nullptr, where);
  timeline().synchronize_all();
  return status;
}

cudaError_t cudaHostAlloc(void** start, std::size_t bytes, unsigned) {
  if (!device_exists(current_device())) return note(cudaErrorNoDevice);
  const std::lock_guard lock(runtime_mutex());
  if (const cudaError_t status = check_waiting("cudaHostAlloc", 0); status != cudaSuccess) return note(status);
  *start = host_allocation_fails() ? nullptr : std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*start == nullptr) return note(cudaErrorMemoryAllocation);
  pinned_blocks()[static_cast<const char*>(*start)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** start, std::size_t bytes, unsigned flags) {
  return cudaHostAlloc(start, bytes, flags);
}

cudaError_t cudaFreeHost(void* start) {
  if (start == nullptr) return cudaSuccess;
  const std::lock_guard lock(runtime_mutex());
  if (const cudaError_t status = check_waiting("cudaFreeHost", 0); status != cudaSuccess) return note(status);
  timeline().synchronize_all();
  if (pinned_blocks().erase(static_cast<const char*>(start)) == 0) return note(cudaErrorInvalidValue);
  std::free(start);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  const std::lock_guard lock(runtime_mutex());
  void* const plain = const_cast<void*>(address);
  if (is_device_address(address))
    *attributes = {cudaMemoryTypeDevice, device_of(address), plain, nullptr};
  else if (is_pinned(address))
    *attributes = {cudaMemoryTypeHost, current_device(), plain, plain};
  else
    *attributes = {cudaMemoryTypeUnregistered, -1, nullptr, plain};
  return cudaSuccess;
}

// One pool per device: the handle is the device's number plus one.
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (!device_exists(device)) return note(cudaErrorInvalidDevice);
  *pool = pool_of_device(device);
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const std::lock_guard lock(runtime_mutex());
  if (attribute == cudaMemPoolAttrReleaseThreshold)
    std::memcpy(&pool_of(pool).release_threshold, value, sizeof(std::uint64_t));
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const std::lock_guard lock(runtime_mutex());
  const Pool& state = pool_of(pool);
  const std::uint64_t used = used_bytes(pool);
  std::uint64_t result = 0;
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      result = state.release_threshold;
      break;
    case cudaMemPoolAttrReservedMemCurrent:
      result = std::max(used, state.reserved);
      break;
    case cudaMemPoolAttrUsedMemCurrent:
      result = used;
      break;
    default:
      return note(cudaErrorNotSupported);
  }
  std::memcpy(value, &result, sizeof result);
  return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t bytes_to_keep) {
  const std::lock_guard lock(runtime_mutex());
  Pool& state = pool_of(pool);
  state.reserved = std::max(used_bytes(pool), std::min<std::uint64_t>(state.reserved, bytes_to_keep));
  return cudaSuccess;
}
