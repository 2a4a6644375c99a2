// The simulated CUDA runtime: copies and fills.
#include "tandem/simulator/capture.h"
#include "tandem/simulator/device_memory.h"
#include "tandem/simulator/fault.h"
#include "tandem/simulator/runtime.h"
#include "tandem/simulator/settings.h"
#include "tandem/simulator/shadow.h"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace tandem::simulator {

namespace {

void check_bounds(const void* start, std::size_t bytes) {
  if (is_device_address(start) && bytes_from(start) < bytes) {
    fail_work(FaultKind::out_of_bounds,
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
          fail_work(FaultKind::race, fmt::format("{} of {} that {} {}, with no event between the streams",
                                                 writes ? "write" : "read", describe_device_address(at),
                                                 name_of_work(Stamp(late_write ? cell.write : readers->stamp).serial()),
                                                 late_write ? "wrote" : "read"));
        }
        if (writes) {
          global_shadow().note_work_write(cell, now, work.where);
        } else {
          if (to_host && cell.write == Stamp::kUninitialised)
            fail_work(FaultKind::uninitialised, fmt::format("nobody has written {}", describe_device_address(at)));
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

/// What a program gets wrong if it changes or frees pageable memory right after a copy from it: CUDA "might" have read
/// it by then, or stage it later. Memory that is gone cannot be compared directly; the kernel copies what is there.
void check_unchanged(const char* from, const std::vector<char>& staged) {
  std::vector<char> now(staged.size());
  const iovec local{now.data(), now.size()}, remote{const_cast<char*>(from), now.size()};
  const auto there = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (there < 0 && errno != EFAULT) return;  // a system that does not allow it
  if (there == static_cast<ssize_t>(now.size()) && now == staged) return;
  fail_work(
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
    fail_work(FaultKind::host_pointer, "the pinned host memory that the graph copies from or to has been freed");
}

}  // namespace

void fail_work(FaultKind kind, const std::string& what) {
  const Work& work = *timeline().current();
  const Site site = site_of(work.where);
  throw Fault(kind, work.name, site, {},
              fmt::format("simulator: {} in {}: {}\n  at {}", name_of(kind), work.name, what, site.text()));
}

void check_order_of_free(void* start) { check_order(start, allocation_bytes(start), true, false); }

}  // namespace tandem::simulator

using namespace tandem::simulator;

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
