// Which elements of a gradient count: those that ReLU let through in the forward pass.
#pragma once

#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/vector.h"

#include <cstdint>

namespace tandem::kernels {

/// N elements from `address` on, a multiple of their size, as floats.
template <int N, typename T>
__device__ device::Vector<float, N> load_floats(const T* address) {
  const device::Vector<T, N> stored = device::load_vector<N>(address);
  device::Vector<float, N> values;
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = device::to_float(stored[i]);
  return values;
}

/// Open where the forward pass's `output` is positive or NaN, or where its bit is set (lowest bit first); everywhere if
/// both are null.
template <typename T>
struct Gate {
  const T* output = nullptr;
  const std::uint8_t* bits = nullptr;

  /// Zeros those of `values`, the elements from number `first` on, that do not count. `first` is a multiple of N.
  template <int N>
  __device__ void apply(device::Vector<float, N>& values, std::int64_t first) const {
    static_assert(N <= 8, "the bits of N elements are in one byte");
    if (output != nullptr) {
      const device::Vector<float, N> forward = load_floats<N>(output + first);
#pragma unroll
      for (int i = 0; i < N; ++i) values[i] = forward[i] <= 0.0f ? 0.0f : values[i];
    }
    if (bits != nullptr) {
      const unsigned open = static_cast<unsigned>(bits[first / 8]) >> (first % 8);
#pragma unroll
      for (int i = 0; i < N; ++i) values[i] = (open >> i & 1u) != 0 ? values[i] : 0.0f;
    }
  }
};

}  // namespace tandem::kernels
