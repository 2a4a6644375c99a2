// Looking up rows on a GPU. For the gradient, the block of an index's first position adds up all that have the same
// index, in order: no sorting and no atomics.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/embedding/embedding_implementations.h"

#include <cmath>

namespace tandem::kernels::cuda {

namespace {

using device::kThreadsPerBlock;

/// Positions, and the rows that they name.
struct Indices {
  const std::int64_t* values;
  std::int64_t stride, count, rows, features;

  Indices(const Tensor& indices, const Tensor& weight)
      : values(indices.data<std::int64_t>()),
        stride(indices.stride(0)),
        count(indices.size(0)),
        rows(weight.size(0)),
        features(weight.size(1)) {}

  __device__ std::int64_t operator[](std::int64_t n) const { return values[n * stride]; }
  __device__ bool has_row(std::int64_t index) const { return index >= 0 && index < rows; }
};

template <typename T>
__global__ void embedding_rows(Indices indices, const T* weight, T* y) {
  const std::int64_t count = indices.count * indices.features;
  for (std::int64_t i = device::thread_in_grid(); i < count; i += device::threads_in_grid()) {
    const std::int64_t n = i / indices.features, d = i - n * indices.features, index = indices[n];
    y[i] = indices.has_row(index) ? weight[index * indices.features + d] : device::from_float<T>(NAN);
  }
}

/// Whether a position before `n` has the same index, for the whole block.
__device__ bool occurs_before(const Indices& indices, std::int64_t n, std::int64_t index) {
  int found = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += kThreadsPerBlock) found |= indices[i] == index ? 1 : 0;
  return __syncthreads_or(found) != 0;
}

template <typename T>
__global__ void embedding_gradients(Indices indices, const T* grad_y, T* grad_weight) {
  for (std::int64_t first = blockIdx.x; first < indices.count; first += gridDim.x) {
    const std::int64_t index = indices[first];
    if (!indices.has_row(index) || occurs_before(indices, first, index)) continue;
    for (std::int64_t d = threadIdx.x; d < indices.features; d += kThreadsPerBlock) {
      float sum = 0.0f;
      for (std::int64_t n = first; n < indices.count; ++n) {
        if (indices[n] == index) sum += device::to_float(grad_y[n * indices.features + d]);
      }
      grad_weight[index * indices.features + d] = device::from_float<T>(sum);
    }
  }
}

}  // namespace

void embedding_forward(const Tensor& indices, const Tensor& weight, const Out& y) {
  if (y.numel() == 0) return;
  device::dispatch(y.dtype(), "embedding", [&]<typename T>(TypeTag<T>) {
    launch(embedding_rows<T>, {device::blocks_for(y.numel(), kThreadsPerBlock), kThreadsPerBlock},
           tandem::cuda::current_stream(y), Indices(indices, weight), weight.data<T>(), y.data<T>());
  });
}

void embedding_backward(const Tensor& indices, const Tensor& grad_y, const Out& grad_weight) {
  grad_weight.zero();
  if (grad_y.numel() == 0 || grad_weight.numel() == 0) return;
  device::dispatch(grad_y.dtype(), "embedding_backward", [&]<typename T>(TypeTag<T>) {
    launch(embedding_gradients<T>, {device::blocks_for(indices.size(0), 1), kThreadsPerBlock},
           tandem::cuda::current_stream(grad_weight), Indices(indices, grad_weight), grad_y.data<T>(),
           grad_weight.data<T>());
  });
}

}  // namespace tandem::kernels::cuda
