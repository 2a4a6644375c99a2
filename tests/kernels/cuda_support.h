// What the tests of CUDA kernels share: inputs in every dtype and kind of view, on the CPU and the same on the device.
#pragma once

#include "tandem/core/random.h"
#include "tandem/core/tensor.h"
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/cast/cast_implementations.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace tandem::test {

inline constexpr DType kKernelDTypes[] = {DType::f32, DType::f16, DType::bf16};

/// Values on the CPU, rounded to `dtype`: small integers, or N(0, 1). A function of the seed.
inline Tensor random_values(const Shape& shape, DType dtype, bool integers, std::uint32_t seed,
                            Layout layout = Layout::channels_last) {
  const Tensor wide = Tensor::empty(shape, {.dtype = DType::f64, .layout = layout});
  const RandomKey key{.seed = seed};
  for (std::int64_t i = 0; i < wide.numel(); ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    Out(wide).data<double>()[i] =
        integers ? static_cast<double>(key.below(index, 9)) - 4.0 : static_cast<double>(key.normal(index));
  }
  const Tensor result = Tensor::empty(shape, {.dtype = dtype, .layout = layout});
  kernels::reference::cast(wide, Out(result));
  return result;
}

/// How a tensor lies in memory.
enum class Kind { dense, row_major, off_by_one, transposed, gaps, expanded };
inline constexpr Kind kKinds[] = {Kind::dense,      Kind::row_major, Kind::off_by_one,
                                  Kind::transposed, Kind::gaps,      Kind::expanded};

inline const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"dense", "row_major", "off_by_one", "transposed", "gaps", "expanded"};
  return kNames[static_cast<int>(kind)];
}

/// A tensor of `shape` that lies in memory like that; dense where `shape` has not the dimensions for it.
inline Tensor random_view(Kind kind, const Shape& shape, DType dtype, bool integers, std::uint32_t seed) {
  const auto make = [&](const Shape& whole, Layout layout = Layout::channels_last) {
    return random_values(whole, dtype, integers, seed, layout);
  };
  Shape whole = shape;
  switch (kind) {
    case Kind::dense:
      break;
    case Kind::row_major:
      return make(shape, Layout::row_major);
    case Kind::off_by_one:
      return make({element_count(shape) + 1}).as_strided(shape, dense_strides(shape, Layout::channels_last), 1);
    case Kind::transposed:
      if (shape.rank() < 2) break;
      std::swap(whole[0], whole[-1]);
      return make(whole).transpose(0, -1);
    case Kind::gaps:
      if (shape.rank() < 1) break;
      whole[-1] = 2 * whole[-1] + 1;
      return make(whole).narrow(-1, 1, shape[-1], 2);
    case Kind::expanded:
      if (shape.rank() < 2) break;
      whole[-2] = 1;
      return make(whole).expand(shape);
  }
  return make(shape);
}

/// The same view of a copy of its whole storage on the device.
inline Tensor view_on_gpu(const Tensor& view) {
  const Tensor whole = view.as_strided({view.storage()->bytes() / size_of(view.dtype())}, {1}, 0);
  return whole.to(kGpu).as_strided(view.shape(), view.strides(), view.offset());
}

/// NaN (or the largest integer) on the device, dense; `off_by_one` at an address that no wide access may have.
inline Tensor poisoned_on_gpu(const Shape& shape, DType dtype, Layout layout = Layout::channels_last,
                              bool off_by_one = false) {
  const PoisonScope poison;
  const Tensor whole = Tensor::empty({element_count(shape) + (off_by_one ? 1 : 0)}, {.dtype = dtype, .device = kGpu});
  return whole.as_strided(shape, dense_strides(shape, layout), off_by_one ? 1 : 0);
}

/// The same values on the CPU as f64.
inline Tensor wide(const Tensor& tensor) { return Tensor::from(tensor.to_vector<double>(), tensor.shape()); }

/// Half the distance from 1 to the next number.
inline double roundoff(DType dtype) { return dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-24; }
/// The smallest number above 0.
inline double smallest(DType dtype) {
  return dtype == DType::f16 ? 0x1p-24 : dtype == DType::bf16 ? 0x1p-133 : 0x1p-149;
}

/// Names the first element of `actual` that is not within bound(i) of `expected` and one rounding to its dtype, or
/// nothing. NaN and infinities must agree.
template <typename Bound>
std::string first_outside(const Tensor& actual, const Tensor& expected, Bound&& bound) {
  const std::vector<double> a = actual.to_vector<double>(), e = expected.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double own = bound(i);
    const double rounding =
        own == 0.0 ? 0.0 : roundoff(actual.dtype()) * (std::abs(e[i]) + own) + smallest(actual.dtype());
    if (a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i])) || std::abs(a[i] - e[i]) <= own + rounding) continue;
    return fmt::format("element {} of {}: {:.9g}, expected {:.9g} within {:.3g}", i, describe(actual), a[i], e[i],
                       own + rounding);
  }
  return {};
}

inline std::string first_difference(const Tensor& actual, const Tensor& expected) {
  return first_outside(actual, expected, [](std::size_t) { return 0.0; });
}

/// True if two dense tensors of equal strides, on any devices, hold the same bits.
inline bool equal_bits(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0 && b.numel() == 0) return a.shape() == b.shape() && a.dtype() == b.dtype();
  const Tensor here = a.to(Device{}).as_strided({a.numel()}, {1}, 0).contiguous();
  const Tensor there = b.to(Device{}).as_strided({b.numel()}, {1}, 0).contiguous();
  return a.shape() == b.shape() && a.strides() == b.strides() && a.dtype() == b.dtype() &&
         std::memcmp(here.raw_data(), there.raw_data(), static_cast<std::size_t>(a.numel() * size_of(a.dtype()))) == 0;
}

}  // namespace tandem::test
