// Combined buffers on CUDA: a thread combines one vector of elements, or one element.
#include "tandem/kernels/reduce/combine_buffers.h"

#include "tandem/core/cuda/launch.h"
#include "tandem/core/cuda/runtime.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/vector.h"

#include <type_traits>

namespace tandem::kernels::cuda {

namespace {

template <typename T>
__device__ compute_t<T> widened(T value) {
  if constexpr (std::is_same_v<compute_t<T>, T>)
    return value;
  else
    return device::to_float(value);
}

template <typename T>
__device__ T rounded(compute_t<T> value) {
  if constexpr (std::is_same_v<compute_t<T>, T>)
    return value;
  else
    return device::from_float<T>(value);
}

/// Whole numbers wrap around, which signed ones of C++ do not by themselves.
template <Combination kHow, typename T>
__device__ T combined(T a, T b) {
  if constexpr (kHow == Combination::min) {
    return b < a || b != b ? b : a;
  } else if constexpr (kHow == Combination::max) {
    return a < b || b != b ? b : a;
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    const U left = static_cast<U>(a), right = static_cast<U>(b);
    return static_cast<T>(kHow == Combination::sum ? left + right : left * right);
  } else {
    return kHow == Combination::sum ? a + b : a * b;
  }
}

/// `count` vectors of kWidth elements from byte `begin` of each buffer on.
template <Combination kHow, int kWidth, typename T>
__global__ void combine_vectors(const void* const* buffers, int buffer_count, std::int64_t begin, std::int64_t count,
                                compute_t<T> divisor, T* output) {
  const auto elements_of = [&](int buffer) {
    return reinterpret_cast<const T*>(static_cast<const char*>(buffers[buffer]) + begin);
  };
  for (std::int64_t i = device::thread_in_grid(); i < count; i += device::threads_in_grid()) {
    const auto first = device::load_vector<kWidth>(elements_of(0) + i * kWidth);
    compute_t<T> total[kWidth];
#pragma unroll
    for (int k = 0; k < kWidth; ++k) total[k] = widened(first[k]);
#pragma unroll 4
    for (int buffer = 1; buffer < buffer_count; ++buffer) {
      const auto values = device::load_vector<kWidth>(elements_of(buffer) + i * kWidth);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) total[k] = combined<kHow>(total[k], widened(values[k]));
    }
    device::Vector<T, kWidth> result;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      if constexpr (kHow == Combination::sum && !std::is_integral_v<T>) {
        result[k] = rounded<T>(total[k] / divisor);
      } else {
        result[k] = rounded<T>(total[k]);
      }
    }
    device::store_vector(output + i * kWidth, result);
  }
}

template <Combination kHow, int kWidth, typename T>
void launch_vectors(const Stream& stream, const BufferRange& range, std::int64_t first, std::int64_t count,
                    double divisor, void* output) {
  if (count == 0) return;
  launch(combine_vectors<kHow, kWidth, T>,
         {device::blocks_for(count, device::kThreadsPerBlock), device::kThreadsPerBlock},
         static_cast<cudaStream_t>(stream.native()), range.buffers, range.buffer_count,
         range.begin + first * static_cast<std::int64_t>(sizeof(T)), count, static_cast<compute_t<T>>(divisor),
         static_cast<T*>(output) + first);
}

template <Combination kHow, typename T>
void combine(const Stream& stream, const BufferRange& range, double divisor, void* output) {
  constexpr int kWidth = device::kVectorWidth<T>;
  const bool is_aligned = range.begin % 16 == 0 && device::aligned_for_vectors(output);
  const std::int64_t vectors = is_aligned ? range.count / kWidth : 0, rest = vectors * kWidth;
  launch_vectors<kHow, kWidth, T>(stream, range, 0, vectors, divisor, output);
  launch_vectors<kHow, 1, T>(stream, range, rest, range.count - rest, divisor, output);
}

}  // namespace

void combine_buffers(const Stream& stream, const BufferRange& range, Combination combination, double divisor,
                     void* output) {
  require(range.dtype != DType::u8, "combine_buffers: {} has no reduction here", name_of(range.dtype));
  tandem::cuda::use_device(stream.device().index);
  dispatch_all(range.dtype, "combine_buffers", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, std::uint8_t>) {
      switch (combination) {
        case Combination::sum:
          return combine<Combination::sum, T>(stream, range, divisor, output);
        case Combination::product:
          return combine<Combination::product, T>(stream, range, divisor, output);
        case Combination::min:
          return combine<Combination::min, T>(stream, range, divisor, output);
        case Combination::max:
          return combine<Combination::max, T>(stream, range, divisor, output);
      }
    }
  });
}

}  // namespace tandem::kernels::cuda
