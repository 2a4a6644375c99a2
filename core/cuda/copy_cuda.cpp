// Copies from and to CUDA devices: one flat transfer, with elements put in order on one side where strides differ.
#include "tandem/core/cuda/check.h"
#include "tandem/core/cuda/copy.h"
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/recording.h"
#include "tandem/core/cuda/runtime.h"

namespace tandem::cuda {

namespace {

bool is_host(const Tensor& tensor) { return tensor.device().type == DeviceType::cpu; }

/// True if both are dense with their elements in the same order.
bool are_flat_copies(const Tensor& a, const Tensor& b) {
  if (!a.is_dense() || !b.is_dense()) return false;
  for (int dim = 0; dim < a.rank(); ++dim) {
    if (a.size(dim) != 1 && a.stride(dim) != b.stride(dim)) return false;
  }
  return true;
}

/// A dense tensor of `like`'s shape on the device of `place`, in `like`'s strides where these are dense; pinned on the
/// host.
Tensor staging(const Tensor& like, const Tensor& place) {
  const MemoryTagScope scope(MemoryTag::workspace);
  const Tensor flat =
      Tensor::empty(like.shape(), {.dtype = like.dtype(), .device = place.device(), .pinned = is_host(place)});
  return like.is_dense() ? flat.as_strided(like.shape(), like.strides(), 0) : flat;
}

/// Between two GPUs: work on either side that was enqueued before comes first, what is enqueued after waits.
void copy_between_gpus(const Out& to, const Tensor& from, std::size_t bytes) {
  const Stream sender = tandem::current_stream(from.device()), receiver = tandem::current_stream(to.device());
  Event ready, done;
  ready.record(receiver);
  sender.wait(ready);
  TANDEM_CHECK_CUDA(cudaMemcpyPeerAsync(to.raw_data(), to.device().index, from.raw_data(), from.device().index, bytes,
                                        static_cast<cudaStream_t>(sender.native())));
  done.record(sender);
  receiver.wait(done);
}

/// Larger copies from pageable memory are waited for: that costs less than the pinned memory to put them into first.
constexpr std::int64_t kMostStagedBytes = std::int64_t{4} << 20;

void copy_flat(const Out& to, const Tensor& from, bool asynchronous) {
  const std::int64_t bytes = to.numel() * size_of(to.dtype());
  const auto count = static_cast<std::size_t>(bytes);
  if (!is_host(to) && !is_host(from) && to.device() != from.device()) return copy_between_gpus(to, from, count);
  const Device device = is_host(to) ? from.device() : to.device();
  const cudaStream_t native = cuda::current_stream(device);
  const bool from_pageable = is_host(from) && !from.storage()->is_pinned();
  if (from_pageable && bytes <= kMostStagedBytes) {
    const Tensor staged = staging(from, from);
    staged.copy_from(from);
    return copy_flat(to, staged, true);  // nobody else knows the staging memory
  }
  const cudaMemcpyKind kind = is_host(to)     ? cudaMemcpyDeviceToHost
                              : is_host(from) ? cudaMemcpyHostToDevice
                                              : cudaMemcpyDeviceToDevice;
  TANDEM_CHECK_CUDA(cudaMemcpyAsync(to.raw_data(), from.raw_data(), count, kind, native));
  if (kind == cudaMemcpyDeviceToDevice) return;
  // The runtime may read and write host memory after it has returned, pageable memory too ("API synchronization
  // behavior" in its manual: such a copy might be synchronous, no more).
  const Tensor& host = is_host(to) ? to.tensor() : from;
  if (asynchronous && host.storage()->is_pinned()) {
    host.storage()->record_stream(tandem::current_stream(device));
  } else {
    TANDEM_CHECK_CUDA(cudaStreamSynchronize(native));
  }
}

}  // namespace

void copy(const Out& to, const Tensor& from, bool asynchronous) {
  if (is_host(to) || is_host(from)) {
    require_no_recording(fmt::format("a copy from {} to {}", name_of(from.device()), name_of(to.device())));
    cuda::current_stream(is_host(to) ? from.device() : to.device());  // pinned memory belongs to this device's context
  }
  if (are_flat_copies(to, from)) return copy_flat(to, from, asynchronous);
  if (to.device() == from.device()) return strided_copy(to, from);
  if (!to.is_dense()) {
    const Out staged(staging(to, to));
    copy(staged, from, asynchronous && !is_host(to));
    to.copy_from(staged);
    return;
  }
  const Tensor staged = staging(to, from);
  staged.copy_from(from);
  copy_flat(to, staged, asynchronous || is_host(from));  // nobody else knows the staging memory
}

}  // namespace tandem::cuda
