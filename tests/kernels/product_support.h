// What the tests of matrix products and convolutions on the GPU share: inputs in every dtype, and derived bounds.
#pragma once

#include "tandem/core/memory.h"
#include "tandem/core/out.h"
#include "tandem/core/tensor.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

namespace tandem::test {

inline constexpr DType kGpuDTypes[] = {DType::f32, DType::f16, DType::bf16};

/// On the CPU: whole numbers in [-3, 3], whose products add up exactly in float, or N(0, 1), rounded to `dtype`.
inline Tensor drawn(const Shape& shape, DType dtype, unsigned seed, bool whole, Layout layout = Layout::row_major) {
  const Tensor tensor = Tensor::empty(shape, {.dtype = dtype, .layout = layout});
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> integer(-3, 3);
  std::normal_distribution<float> normal;
  dispatch_floating(dtype, "test", [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
      Out(tensor).data<T>()[i] = static_cast<T>(whole ? static_cast<float>(integer(generator)) : normal(generator));
  });
  return tensor;
}

/// A new tensor on the CPU in another dtype, dense in `layout`, with visit(value) of each element.
template <typename Visit>
Tensor mapped(const Tensor& x, DType dtype, Layout layout, Visit&& visit) {
  if (!x.defined()) return {};
  const Tensor from = x.to(Device{}).contiguous(layout),
               out = Tensor::empty(x.shape(), {.dtype = dtype, .layout = layout});
  dispatch_floating(x.dtype(), "test", [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    dispatch_floating(dtype, "test", [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (std::int64_t i = 0; i < x.numel(); ++i)
        Out(out).data<T>()[i] = static_cast<T>(visit(static_cast<compute_t<From>>(from.data<From>()[i])));
    });
  });
  return out;
}

inline Tensor in_f64(const Tensor& x, Layout layout = Layout::row_major) {
  return mapped(x, DType::f64, layout, [](auto value) { return value; });
}

inline Tensor absolute_f64(const Tensor& x, Layout layout = Layout::row_major) {
  return mapped(x, DType::f64, layout, [](auto value) { return std::fabs(value); });
}

/// `x` on the GPU; undefined stays undefined.
inline Tensor on_gpu(const Tensor& x) { return x.defined() ? x.to(kGpu) : x; }

/// Unwritten memory on the GPU, all NaN.
inline Tensor poisoned_on_gpu(const Shape& shape, DType dtype, Layout layout = Layout::row_major) {
  const PoisonScope poison;
  return Tensor::empty(shape, {.dtype = dtype, .layout = layout, .device = kGpu});
}

/// The first difference between `got` and `expected` (f64), or "" if there is none: whole numbers must agree after one
/// rounding to the dtype of `got`; others within `terms` float roundings of `scale` (f64), the sum of what was added up
/// in absolute value, and one of the dtype; if products are less exact than that, `product_error` says by how much.
/// Without a scale, whole numbers.
inline std::string difference(const Tensor& got, const Tensor& expected, const Tensor& scale = {}, double terms = 0,
                              double product_error = 0) {
  const std::vector<double> a = got.to_vector<double>(), b = expected.to_vector<double>();
  const std::vector<double> s = scale.defined() ? scale.to_vector<double>() : std::vector<double>();
  const double eps = got.dtype() == DType::f16 ? 0x1p-10 : got.dtype() == DType::bf16 ? 0x1p-7 : 0x1p-23;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!scale.defined()) {
      double rounded = b[i];
      dispatch_floating(got.dtype(), "test", [&](auto tag) {
        using T = typename decltype(tag)::type;
        rounded = static_cast<double>(static_cast<T>(static_cast<compute_t<T>>(b[i])));
      });
      if (a[i] == rounded) continue;
    } else {
      // Small results of halves are rounded to multiples of their smallest number.
      const double smallest = got.dtype() == DType::f16 ? 0x1p-24 : 0.0;
      if (std::fabs(a[i] - b[i]) <= s[i] * (terms * 0x1p-23 + eps + product_error) + smallest) continue;
    }
    return "element " + std::to_string(i) + ": " + std::to_string(a[i]) + " for " + std::to_string(b[i]);
  }
  return a.size() == b.size() ? "" : "sizes differ";
}

/// True if the elements have the same bits.
inline bool same_bits_on_gpu(const Tensor& a, const Tensor& b) {
  const Tensor left = a.to(Device{}), right = b.to(Device{});
  return std::memcmp(left.raw_data(), right.raw_data(), static_cast<std::size_t>(a.numel() * size_of(a.dtype()))) == 0;
}

}  // namespace tandem::test
