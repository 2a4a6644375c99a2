// What the core asks of the CUDA runtime, without CUDA's headers. Defined in builds with CUDA only: call these under
// `if constexpr (kHasCuda)`. Streams and events are passed as the runtime's own handles.
#pragma once

#include "tandem/core/allocator.h"
#include "tandem/core/out.h"

#include <functional>
#include <memory>

namespace tandem::cuda {

/// Makes `device` the one that this thread's CUDA calls are for.
void use_device(int device);

std::shared_ptr<void> make_stream(int device);
void synchronize_stream(void* stream);
void synchronize_device(int device);

std::shared_ptr<void> make_event(int device, bool timed);
void record_event(void* event, void* stream);
void wait_for_event(void* stream, void* event);
void synchronize_event(void* event);
bool is_event_done(void* event);
double elapsed_ms(void* from, void* to);

/// A cudaGraphExec_t of what `work` enqueues on the current stream; see core/work_graph.h.
/// `actions`: those that the work gave to note_action().
std::shared_ptr<void> record_graph(Device device, const std::function<void()>& work,
                                   std::vector<std::function<void()>>& actions);
void launch_graph(Device device, void* graph);

/// Device memory, from the driver's pool.
Allocator& device_allocator(int device);
/// Page-locked host memory.
Allocator& pinned_allocator();

/// Sets `bytes` bytes of device memory, on the device's current stream.
void set_bytes(Device device, void* to, int value, std::int64_t bytes);

/// Tensor::copy_from, where at least one of the two is on a CUDA device; shapes and dtypes agree and are not empty. May
/// return before host memory is done with if `asynchronous`.
void copy(const Out& to, const Tensor& from, bool asynchronous);

/// Tensor::fill on a CUDA device; not empty.
void fill(const Out& out, double value);

}  // namespace tandem::cuda
