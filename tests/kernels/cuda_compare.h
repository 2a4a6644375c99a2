// What the tests of CUDA kernels share: inputs of any dtype and stride on the GPU, and comparison with an f64
// reference.
#pragma once

#include "tandem/core/memory.h"
#include "tandem/core/out.h"
#include "tandem/core/random.h"
#include "tandem/core/tensor.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace tandem::test {

inline const std::vector<DType> kKernelDtypes{DType::f32, DType::f16, DType::bf16};

/// Where the elements of a tensor lie: one after another from an aligned address on, from an odd one on, or every other
/// element of a larger tensor.
enum class Place { dense, unaligned, gaps };

inline const char* name_of(Place place) {
  return place == Place::dense ? "dense" : place == Place::unaligned ? "unaligned" : "with gaps";
}

inline double roundoff(DType dtype) {
  return dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f32 ? 0x1p-24 : 0x1p-53;
}

/// A tensor of NaNs, or of integers that no result is, at such a place of the GPU, images in channels_last.
inline Tensor empty_at(Place place, const Shape& shape, DType dtype, Device device = kGpu) {
  const Strides strides = dense_strides(shape, Layout::channels_last);
  const std::int64_t spread = place == Place::gaps ? 2 : 1, count = element_count(shape);
  const double poison = is_floating(dtype) ? std::nan("") : dtype == DType::u8 ? 255.0 : -1.0;
  const Tensor memory = Tensor::full({spread * count + 1}, poison, {.dtype = dtype, .device = device});
  Strides steps = strides;
  for (int dim = 0; dim < steps.rank(); ++dim) steps[dim] *= spread;
  return memory.as_strided(shape, count == 0 ? strides : steps, place == Place::dense ? 0 : 1);
}

/// The same elements at such a place of the GPU.
inline Tensor put(const Tensor& values, Place place = Place::dense) {
  const Tensor result = empty_at(place, values.shape(), values.dtype());
  result.copy_from(values);
  return result;
}

/// On the CPU: whole numbers in [-4, 4], or normal ones rounded to `dtype`; images in channels_last.
inline Tensor values_of(const Shape& shape, DType dtype, bool integers, std::uint32_t seed, double scale = 1.0,
                        double shift = 0.0) {
  const Tensor tensor = Tensor::empty(shape, {.dtype = dtype, .layout = Layout::channels_last});
  const RandomKey key{.seed = seed};
  dispatch_floating(dtype, "values_of", [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      const double normal = static_cast<double>(key.normal(static_cast<std::uint64_t>(i)));
      const double value = integers ? std::clamp(std::round(2.0 * normal), -4.0, 4.0) : scale * normal + shift;
      Out(tensor).data<T>()[i] = T(static_cast<compute_t<T>>(value));
    }
  });
  return tensor;
}

/// The same values as f64 on the CPU.
inline Tensor wide(const Tensor& tensor) {
  return Tensor::from(tensor.to_vector<double>(), tensor.shape(), Layout::channels_last);
}

inline Tensor wide_like(const Tensor& tensor) {
  return Tensor::full(tensor.shape(), std::nan(""), {.dtype = DType::f64, .layout = Layout::channels_last});
}

/// Names the first element of `actual` that is farther from `expected` than bound(i), or nothing.
template <typename Bound>
std::string first_outside(const Tensor& actual, const Tensor& expected, Bound&& bound) {
  if (actual.shape() != expected.shape()) return describe(actual) + " instead of " + describe(expected);
  const std::vector<double> a = actual.to_vector<double>(), e = expected.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double allowed = bound(i);
    if (std::abs(a[i] - e[i]) <= allowed || (std::isnan(a[i]) && std::isnan(e[i])) || a[i] == e[i]) continue;
    return fmt::format("element {} of {}: {:.9g}, expected {:.9g} within {:.3g}", i, describe(actual), a[i], e[i],
                       allowed);
  }
  return {};
}

inline std::string first_difference(const Tensor& actual, const Tensor& expected) {
  return first_outside(actual, expected, [](std::size_t) { return 0.0; });
}

/// The bound of a sum of `terms` products in f32 that is rounded to the dtype of `actual` once; magnitude: sum |a||b|.
inline std::string outside_sum_bound(const Tensor& actual, const Tensor& expected, const Tensor& magnitude,
                                     double terms) {
  const std::vector<double> sizes = magnitude.to_vector<double>(), values = expected.to_vector<double>();
  const double smallest = actual.dtype() == DType::f16 ? 0x1p-24 : 0x1p-133;
  return first_outside(actual, expected, [&](std::size_t i) {
    const double from_sums = (terms + 2.0) * 0x1p-24 * sizes[i];
    return from_sums + roundoff(actual.dtype()) * (std::abs(values[i]) + from_sums) + smallest;
  });
}

/// True if both hold the same bits; floating values are compared through f64, where NaN equals NaN.
inline bool same_values(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0);
}

}  // namespace tandem::test
