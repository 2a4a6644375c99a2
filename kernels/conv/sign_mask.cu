// The 1-bit ReLU mask as passes of its own, where a convolution cannot write or read it: bytes that two tiles share,
// and libraries.
#include "core/cuda/current_stream.h"
#include "core/cuda/launch.h"
#include "kernels/conv/implementations.h"
#include "kernels/device/dispatch.h"
#include "kernels/device/grid.h"
#include "kernels/device/half.h"
#include "kernels/device/reduce.h"

namespace tandem::kernels::cuda {
namespace {

template <typename T>
__global__ void write_bits(const T* y, std::int64_t count, std::uint8_t* mask) {
  const int lane = static_cast<int>(threadIdx.x) % device::kWarpThreads;
  for (std::int64_t i = device::thread_in_grid(); i - lane < count; i += device::threads_in_grid()) {
    const bool positive = i < count && device::to_float(y[i]) > 0.0f;
    const unsigned bits = __ballot_sync(device::kAllLanes, positive);
    if (i < count && lane % 8 == 0) mask[i / 8] = static_cast<std::uint8_t>(bits >> lane);
  }
}

template <typename T>
__global__ void keep_where_set(const T* values, const std::uint8_t* mask, std::int64_t count, T* out) {
  for (std::int64_t i = device::thread_in_grid(); i < count; i += device::threads_in_grid()) {
    const T value = values[i];  // read by all lanes, whose sectors it is in anyway
    out[i] = (mask[i / 8] >> i % 8 & 1) != 0 ? value : T{};
  }
}

}  // namespace

void sign_mask(const Tensor& y, const Tensor& mask) {
  device::dispatch(y.dtype(), "conv_bias_relu_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (y.numel() == 0) return;
    launch(write_bits<T>, {device::blocks_for(y.numel(), device::kThreadsPerBlock), device::kThreadsPerBlock},
           tandem::cuda::current_stream(y), y.data<T>(), y.numel(), mask.data<std::uint8_t>());
  });
}

void apply_mask(const Tensor& grad_y, const Tensor& mask, const Tensor& out) {
  device::dispatch(grad_y.dtype(), "conv_bias_relu_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (grad_y.numel() == 0) return;
    launch(keep_where_set<T>, {device::blocks_for(grad_y.numel(), device::kThreadsPerBlock), device::kThreadsPerBlock},
           tandem::cuda::current_stream(grad_y), grad_y.data<T>(), mask.data<std::uint8_t>(), grad_y.numel(),
           out.data<T>());
  });
}

}  // namespace tandem::kernels::cuda
