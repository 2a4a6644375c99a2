// The 1-bit ReLU mask as passes of its own, where a convolution cannot write or read it: bytes that two tiles share,
// and libraries.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/conv/operands.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/reduce.h"
#include "tandem/kernels/device/vector.h"

#include <type_traits>

namespace tandem::kernels::cuda {
namespace {

constexpr int kBitsOfByte = 8;

/// Elements that a thread moves at once: 16 bytes, eight halves, from addresses that allow it.
template <typename T>
constexpr int kMaskWidth = device::kVectorWidth<T>;

/// kWidth elements per thread and step: neighbours that share a byte of the mask pass their bits on to the first of
/// them. The few at the end that fill no vector are one more step of one of them.
template <int kWidth, typename T>
__global__ void write_bits(const T* y, std::int64_t count, std::uint8_t* mask) {
  constexpr int kSharing = kBitsOfByte / kWidth;  // threads of a byte
  const int lane = static_cast<int>(threadIdx.x) % device::kWarpThreads;
  for (std::int64_t i = device::thread_in_grid(); (i - lane) * kWidth < count; i += device::threads_in_grid()) {
    const std::int64_t first = i * kWidth;
    unsigned bits = 0;
    if (first + kWidth <= count) {
      const auto values = device::load_vector<kWidth>(y + first);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) bits |= device::to_float(values[k]) > 0.0f ? 1u << k : 0u;
    } else {
      for (int k = 0; first + k < count; ++k) bits |= device::to_float(y[first + k]) > 0.0f ? 1u << k : 0u;
    }
#pragma unroll
    for (int distance = 1; distance < kSharing; distance *= 2)
      bits |= __shfl_xor_sync(device::kAllLanes, bits, distance) << distance * kWidth;
    if (first < count && lane % kSharing == 0) mask[first / kBitsOfByte] = static_cast<std::uint8_t>(bits);
  }
}

template <int kWidth, typename T>
__global__ void keep_where_set(const T* values, const std::uint8_t* mask, std::int64_t count, T* out) {
  const std::int64_t vectors = count / kWidth;
  for (std::int64_t i = device::thread_in_grid(); i < vectors; i += device::threads_in_grid()) {
    const std::int64_t first = i * kWidth;
    auto kept = device::load_vector<kWidth>(values + first);  // by all lanes, whose sectors it is in anyway
    const unsigned bits = static_cast<unsigned>(mask[first / kBitsOfByte]) >> first % kBitsOfByte;
#pragma unroll
    for (int k = 0; k < kWidth; ++k)
      if ((bits >> k & 1u) == 0) kept[k] = T{};
    device::store_vector(out + first, kept);
  }
  const std::int64_t last = vectors * kWidth + device::thread_in_grid();
  if (last < count) out[last] = (mask[last / kBitsOfByte] >> last % kBitsOfByte & 1) != 0 ? values[last] : T{};
}

/// Calls visit(TypeTag<T>, width) with the number of elements that a thread takes at once, 1 from odd addresses.
template <typename Visit, typename... Tensors>
void dispatch_width(DType dtype, std::string_view op, Visit&& visit, const Tensors&... tensors) {
  device::dispatch(dtype, op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (device::aligned_for_vectors(tensors.raw_data()...))
      return visit(tag, std::integral_constant<int, kMaskWidth<T>>{});
    visit(tag, std::integral_constant<int, 1>{});
  });
}

LaunchShape shape_for(std::int64_t count, int width) {
  return {device::blocks_for(count, std::int64_t{device::kThreadsPerBlock} * width), device::kThreadsPerBlock};
}

}  // namespace

void sign_mask(const Tensor& y, const Out& mask) {
  if (y.numel() == 0) return;
  const auto run = [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    launch(write_bits<width, T>, shape_for(y.numel(), width), tandem::cuda::current_stream(y), y.data<T>(), y.numel(),
           mask.data<std::uint8_t>());
  };
  dispatch_width(y.dtype(), "conv_bias_relu_forward", run, y);
}

void apply_mask(const Tensor& grad_y, const Tensor& mask, const Out& out) {
  if (grad_y.numel() == 0) return;
  const auto run = [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    launch(keep_where_set<width, T>, shape_for(grad_y.numel(), width), tandem::cuda::current_stream(grad_y),
           grad_y.data<T>(), mask.data<std::uint8_t>(), grad_y.numel(), out.data<T>());
  };
  dispatch_width(grad_y.dtype(), "conv_bias_relu_backward", run, grad_y, out);
}

}  // namespace tandem::kernels::cuda
