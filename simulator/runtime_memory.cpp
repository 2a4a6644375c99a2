// The simulated CUDA runtime: allocation, copies and fills.
#include "tandem/simulator/capture.h"
#include "tandem/simulator/device_memory.h"
#include "tandem/simulator/fault.h"
#include "tandem/simulator/ipc.h"
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

[[noreturn]] void fault(FaultKind kind, const std::string& what) {
  const Work& work = *timeline().current();
  const Site site = site_of(work.where);
  throw Fault(kind, work.name, site, {},
              fmt::format("simulator: {} in {}: {}\n  at {}", name_of(kind), work.name, what, site.text()));
}

void check_bounds(const void* start, std::size_t bytes) {
  if (is_device_address(start) && bytes_from(start) < bytes) {
    fault(FaultKind::out_of_bounds,
          fmt::format("{} bytes from {}", bytes, describe_device_address(reinterpret_cast<std::uintptr_t>(start))));
  }
}

/// Checks what a copy or fill does to device memory against earlier work on other streams.
void check_order(const void* start, std::size_t bytes, bool writes, bool to_host) {
  if constexpr (!kChecksMemory) return;
  const Work& work = *timeline().current();
  const std::uint64_t now = Stamp::make(work.first_serial, 0, 0, 0, false).bits();
  const auto ordered = [](std::uint64_t earlier) {
    return earlier <= Stamp::kUninitialised || timeline().happened_before_current(Stamp(earlier).serial());
  };
  global_shadow().for_each_cell(
      reinterpret_cast<std::uintptr_t>(start), bytes, [&](ShadowCell& cell, std::uintptr_t at, std::size_t) {
        const bool late_write = !ordered(cell.write);
        const Readers* const readers = writes ? global_shadow().unordered_readers(cell, ordered) : nullptr;
        if (late_write || readers != nullptr) {
          fault(FaultKind::race, fmt::format("{} of {} that {} {}, with no event between the streams",
                                             writes ? "write" : "read", describe_device_address(at),
                                             name_of_work(Stamp(late_write ? cell.write : readers->stamp).serial()),
                                             late_write ? "wrote" : "read"));
        }
        if (writes) {
          global_shadow().note_work_write(cell, now, work.where);
        } else {
          if (to_host && cell.write == Stamp::kUninitialised)
            fault(FaultKind::uninitialised, fmt::format("nobody has written {}", describe_device_address(at)));
          global_shadow().note_work_read(cell, now, work.where);
        }
      });
}

void copy_now(void* to, const void* from, std::size_t bytes) {
  check_bounds(from, bytes);
  check_bounds(to, bytes);
  const bool from_device = is_device_address(from), to_device = is_device_address(to);
  if (from_device) check_order(from, bytes, false, !to_device);
  if (to_device) check_order(to, bytes, true, false);
  std::memmove(to, from, bytes);
}

/// CUDA says nothing of what happens then to those that still read it.
void check_open_elsewhere(void* start) {
  if (const int times = take_back_export(start); times > 0)
    fault(FaultKind::out_of_bounds,
          fmt::format("{} is freed while it is open {} times in other processes: cudaIpcCloseMemHandle comes first",
                      describe_device_address(reinterpret_cast<std::uintptr_t>(start)), times));
}

/// What a program gets wrong if it changes or frees pageable memory right after a copy from it: CUDA "might" have read
/// it by then, or stage it later. Memory that is gone cannot be compared directly; the kernel copies what is there.
void check_unchanged(const char* from, const std::vector<char>& staged) {
  std::vector<char> now(staged.size());
  const iovec local{now.data(), now.size()}, remote{const_cast<char*>(from), now.size()};
  const auto there = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (there < 0 && errno != EFAULT) return;  // a system that does not allow it
  if (there == static_cast<ssize_t>(now.size()) && now == staged) return;
  fault(
      FaultKind::race,
      fmt::format("{} bytes of pageable host memory have changed, or are gone, since the call: the copy may read them "
                  "until its stream was waited for",
                  staged.size()));
}

bool direction_fits(const void* to, const void* from, cudaMemcpyKind kind) {
  const bool to_device = is_device_address(to), from_device = is_device_address(from);
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
      return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
      return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
      return to_device && from_device;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
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

void count_copy(const void* to, const void* from, std::size_t bytes) {
  if (is_device_address(to) && !is_device_address(from)) {
    ++runtime_counts().copies_to_device;
    runtime_counts().bytes_to_device += static_cast<std::int64_t>(bytes);
  }
  if (!is_device_address(to) && is_device_address(from))
    runtime_counts().bytes_to_host += static_cast<std::int64_t>(bytes);
  if (is_device_address(to) && is_device_address(from))
    runtime_counts().bytes_on_device += static_cast<std::int64_t>(bytes);
}

/// What a node of a graph finds when it comes to host memory that has been freed since the capture.
void check_pinned(const void* start) {
  if (!is_device_address(start) && !is_pinned(start))
    fault(FaultKind::host_pointer, "the pinned host memory that the graph copies from or to has been freed");
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

void tandem::simulator::check_order_of_free(void* start) { check_order(start, allocation_bytes(start), true, false); }

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
  *start = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
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

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
                            TandemWhere where) {
  if (!device_exists(current_device())) return note(cudaErrorNoDevice);
  const std::lock_guard lock(runtime_mutex());
  if (bytes == 0) return cudaSuccess;
  if (!direction_fits(to, from, kind)) return note(cudaErrorInvalidMemcpyDirection);
  StreamState& state = state_of(stream);
  const SiteId site = site_id(where);
  if (const cudaError_t status = check_stream(state, "cudaMemcpyAsync", site); status != cudaSuccess)
    return note(status);
  const bool from_pageable = !is_device_address(from) && !is_pinned(from);
  const bool to_pageable = !is_device_address(to) && !is_pinned(to);
  if (state.capture != nullptr) {
    if (from_pageable || to_pageable) {  // CUDA would keep the address of memory that is gone at the launch
      return note(invalidate(*state.capture, cudaErrorStreamCaptureUnsupported,
                             fmt::format("cudaMemcpyAsync at {}, of pageable host memory", site_of(site).text())));
    }
    submit(state,
           {.type = cudaGraphNodeTypeMemcpy,
            .name = "cudaMemcpyAsync",
            .arguments = argument_bytes_of({number_of(to), number_of(from), bytes})},
           site, [=] {
             check_pinned(from);
             check_pinned(to);
             count_copy(to, from, bytes);
             copy_now(to, from, bytes);
           });
    return cudaSuccess;
  }
  count_copy(to, from, bytes);
  if (from_pageable && settings().streams == Streams::deferred) {
    // When the runtime reads pageable memory is its own business: whoever leaves it as it is sees no difference.
    const auto staged =
        std::make_shared<std::vector<char>>(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
    timeline().enqueue(state, "cudaMemcpyAsync", site, [=] {
      check_unchanged(static_cast<const char*>(from), *staged);
      copy_now(to, staged->data(), bytes);
    });
  } else {
    timeline().enqueue(state, "cudaMemcpyAsync", site, [=] { copy_now(to, from, bytes); });
  }
  if (to_pageable) {
    ++runtime_counts().stream_waits;
    timeline().synchronize(state);
  }
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, TandemWhere where) {
  {
    const std::lock_guard lock(runtime_mutex());
    const cudaError_t status = check_waiting("cudaMemcpy", site_id(where));
    if (status != cudaSuccess) return note(status);
  }
  const cudaError_t status = cudaMemcpyAsync(to, from, bytes, kind, nullptr, where);
  if (status != cudaSuccess) return status;
  return cudaStreamSynchronize(nullptr);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                cudaStream_t stream, TandemWhere where) {
  if (!device_exists(to_device) || !device_exists(from_device)) return note(cudaErrorInvalidDevice);
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream, where);
}

cudaError_t tandem::simulator::copy_variable(void* to, const void* from, std::size_t bytes, std::size_t offset,
                                             std::size_t size) {
  if (!device_exists(current_device())) return note(cudaErrorNoDevice);
  if (offset > size || bytes > size - offset) return note(cudaErrorInvalidValue);
  const std::lock_guard lock(runtime_mutex());
  StreamState& stream = state_of(nullptr);
  cudaError_t status = check_waiting("a copy of a variable", 0);
  if (status == cudaSuccess) status = check_stream(stream, "a copy of a variable", 0);
  if (status != cudaSuccess) return note(status);
  timeline().enqueue(stream, "a copy of a variable", 0, [=] { std::memcpy(to, from, bytes); });
  timeline().synchronize(stream);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* start, int value, std::size_t bytes, cudaStream_t stream, TandemWhere where) {
  if (!device_exists(current_device())) return note(cudaErrorNoDevice);
  const std::lock_guard lock(runtime_mutex());
  if (bytes == 0) return cudaSuccess;
  if (!is_device_address(start)) return note(cudaErrorInvalidValue);
  StreamState& state = state_of(stream);
  if (const cudaError_t status = check_stream(state, "cudaMemsetAsync", site_id(where)); status != cudaSuccess)
    return note(status);
  submit(state,
         {.type = cudaGraphNodeTypeMemset,
          .name = "cudaMemsetAsync",
          .arguments = argument_bytes_of({number_of(start), static_cast<std::uint64_t>(value), bytes})},
         site_id(where), [=] {
           check_bounds(start, bytes);
           check_order(start, bytes, true, false);
           std::memset(start, value, bytes);
         });
  return cudaSuccess;
}

cudaError_t cudaMemset(void* start, int value, std::size_t bytes, TandemWhere where) {
  {
    const std::lock_guard lock(runtime_mutex());
    const cudaError_t status = check_waiting("cudaMemset", site_id(where));
    if (status != cudaSuccess) return note(status);
  }
  return cudaMemsetAsync(start, value, bytes, nullptr, where);
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
