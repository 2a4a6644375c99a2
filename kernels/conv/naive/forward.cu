// Convolution with one thread per output: every geometry, nothing shared. The first step of the ladder, and the one to
// read first.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/conv/naive/naive.h"
#include "tandem/kernels/conv/naive/position.cuh"
#include "tandem/kernels/dense_operand.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/reduce.h"

#include <array>

namespace tandem::kernels::cuda::naive {
namespace {

/// `w` is [R, S, C / groups, K]: neighbouring threads, which have neighbouring output channels, read neighbours.
template <typename T>
__device__ float sum_of_products(const ConvGeometry& g, const T* x, const T* w, const Position& at) {
  const std::int64_t group_c = g.c / g.groups, group_k = g.k / g.groups;
  const std::int64_t first_c = at.channel / group_k * group_c;
  float sum = 0.0f;
  for (std::int64_t r = 0; r < g.r; ++r)
    for (std::int64_t s = 0; s < g.s; ++s) {
      const std::int64_t row = at.row * g.stride_h - g.pad_h + r * g.dilation_h;
      const std::int64_t column = at.column * g.stride_w - g.pad_w + s * g.dilation_w;
      if (row < 0 || row >= g.h || column < 0 || column >= g.w) continue;
      const T* const image = x + ((at.image * g.h + row) * g.w + column) * g.c + first_c;
      const T* const weight = w + (r * g.s + s) * group_c * g.k + at.channel;
      for (std::int64_t c = 0; c < group_c; ++c) sum += device::to_float(image[c]) * device::to_float(weight[c * g.k]);
    }
  return sum;
}

template <typename T>
__global__ void __launch_bounds__(device::kThreadsPerBlock)
    forward_naive(ConvGeometry g, const T* x, const T* w, const T* bias, bool relu, T* y, std::uint8_t* mask) {
  const std::int64_t count = g.n * g.p * g.q * g.k;
  const int lane = static_cast<int>(threadIdx.x) % device::kWarpThreads;
  // A warp continues until its first lane is past the end: all lanes have to take part in the ballot.
  for (std::int64_t i = device::thread_in_grid(); i - lane < count; i += device::threads_in_grid()) {
    bool positive = false;
    if (i < count) {
      const Position at(i, g.p, g.q, g.k);
      float value = sum_of_products(g, x, w, at);
      if (bias != nullptr) value += device::to_float(bias[at.channel]);
      const T stored = device::from_float<T>(relu && value < 0.0f ? 0.0f : value);
      positive = device::to_float(stored) > 0.0f;
      y[i] = stored;
    }
    const unsigned bits = __ballot_sync(device::kAllLanes, positive);
    if (mask != nullptr && i < count && lane % 8 == 0) mask[i / 8] = static_cast<std::uint8_t>(bits >> lane);
  }
}

}  // namespace

std::string_view obstacle(PassKind /*all*/, const ConvGeometry& /*every*/, const Operands& /*of any address*/) {
  return "";
}

void forward(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Out& y) {
  device::dispatch(y.dtype(), "conv2d_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (y.numel() == 0) return;
    const Tensor transposed = dense_input(w.permute(std::array{2, 3, 1, 0}), Layout::row_major);
    launch(forward_naive<T>,
           {device::blocks_for(y.numel(), device::kThreadsPerBlock, 1 << 20), device::kThreadsPerBlock},
           tandem::cuda::current_stream(y.device()), g, x.data<T>(), transposed.data<T>(),
           data_or_null<T>(epilogue.bias), epilogue.relu, y.data<T>(), data_or_null<std::uint8_t>(epilogue.mask));
  });
}

}  // namespace tandem::kernels::cuda::naive
