// What the convolution tests share: cases, inputs, and comparison with the reference.
#pragma once

#include "tandem/core/out.h"
#include "tandem/core/parallel.h"
#include "tandem/core/tensor.h"
#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/conv/implementations.h"
#include "tests/support/catch.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace tandem::test {

struct ConvCase {
  std::int64_t n, c, h, w, k, r, s;
  kernels::Conv2dOptions options;

  Shape x() const { return {n, c, h, w}; }
  Shape weight() const { return {k, c / options.groups, r, s}; }
  Shape y() const { return kernels::conv2d_output_shape(x(), weight(), options); }
  kernels::ConvGeometry geometry() const { return kernels::make_geometry(x(), weight(), options); }
  std::string text() const {
    return "x " + to_string(x()) + " w " + to_string(weight()) + " stride " + std::to_string(options.stride[0]) + "," +
           std::to_string(options.stride[1]) + " pad " + std::to_string(options.padding[0]) + "," +
           std::to_string(options.padding[1]) + " dilation " + std::to_string(options.dilation[0]) + "," +
           std::to_string(options.dilation[1]) + " groups " + std::to_string(options.groups);
  }
};

/// A case with a square kernel.
inline ConvCase square_case(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t k,
                            std::int64_t kernel, std::int64_t padding, std::int64_t stride = 1,
                            std::int64_t dilation = 1, std::int64_t groups = 1) {
  return {n, c, h, w, k, kernel, kernel, {{stride, stride}, {padding, padding}, {dilation, dilation}, groups}};
}

inline TensorOptions channels_last(DType dtype = DType::f32) { return {dtype, Layout::channels_last, {}}; }

/// Fills an f32 or f64 tensor in memory order.
template <typename Draw>
Tensor filled(const Shape& shape, Draw&& draw) {
  const Tensor tensor = Tensor::empty(shape, channels_last());
  float* data = Out(tensor).data<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) data[i] = draw();
  return tensor;
}

/// Whole numbers in [-3, 3] times `unit`: every sum of their products is exact in f32.
inline Tensor integers(const Shape& shape, unsigned seed, float unit = 1.0f) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> draw(-3, 3);
  return filled(shape, [&] { return static_cast<float>(draw(generator)) * unit; });
}

inline Tensor normals(const Shape& shape, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> draw;
  return filled(shape, [&] { return draw(generator); });
}

inline Tensor poisoned(const Shape& shape) {
  return Tensor::full(shape, std::numeric_limits<double>::quiet_NaN(), channels_last());
}

inline Tensor absolute(const Tensor& x) {
  const Tensor out = empty_like(x);
  for (std::int64_t i = 0; i < x.numel(); ++i) Out(out).data<float>()[i] = std::fabs(x.data<float>()[i]);
  return out;
}

/// The gradient where the bits of `mask` are set.
inline Tensor masked(const Tensor& gradient, const Tensor& mask) {
  const Tensor out = empty_like(gradient);
  kernels::reference::apply_mask(gradient, mask, Out(out));
  return out;
}

/// The largest |got - expected| / (eps * scale), element by element; infinite where `got` is not finite or differs
/// where the scale is zero.
inline double error_in_eps(const Tensor& got, const Tensor& expected, const Tensor& scale) {
  double worst = 0.0;
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    const double a = static_cast<double>(got.data<float>()[i]), b = static_cast<double>(expected.data<float>()[i]);
    const double unit = static_cast<double>(scale.data<float>()[i]) * std::numeric_limits<float>::epsilon();
    if (a == b) continue;
    worst = std::max(worst,
                     unit > 0 && std::isfinite(a) ? std::fabs(a - b) / unit : std::numeric_limits<double>::infinity());
  }
  return worst;
}

inline bool equal(const Tensor& a, const Tensor& b) {
  for (std::int64_t i = 0; i < a.numel(); ++i)
    if (!(a.data<float>()[i] == b.data<float>()[i])) return false;
  return true;
}

/// Shapes that end tiles, vectors, panels and images in every way.
inline std::vector<ConvCase> winograd_cases() {
  return {square_case(2, 16, 8, 8, 32, 3, 1), square_case(1, 33, 7, 5, 20, 3, 1), square_case(3, 16, 4, 4, 16, 3, 0),
          square_case(2, 17, 6, 9, 48, 3, 2), square_case(5, 32, 2, 2, 32, 3, 1), square_case(1, 64, 13, 3, 33, 3, 1),
          square_case(1, 5, 3, 3, 3, 3, 0), square_case(2, 1, 5, 6, 1, 3, 1), square_case(40, 16, 8, 8, 16, 3, 1),
          square_case(1, 16, 1, 1, 16, 3, 1), square_case(1, 40, 28, 28, 24, 3, 1),
          // Several blocks of tiles, which the edges cut on the right, below, both ways and not at all.
          square_case(70, 16, 7, 7, 16, 3, 1), square_case(60, 17, 6, 5, 16, 3, 1),
          square_case(150, 16, 3, 3, 16, 3, 1), square_case(80, 16, 1, 7, 16, 3, 1),
          // So many that the filter gradient goes through more than one block in a part.
          square_case(56, 48, 7, 19, 48, 3, 1)};
}

inline std::vector<ConvCase> direct_cases() {
  std::vector<ConvCase> cases = winograd_cases();
  for (const ConvCase& more : {
           square_case(1, 1, 1, 1, 1, 1, 0),           square_case(2, 3, 9, 7, 32, 3, 1),
           square_case(2, 1, 8, 8, 32, 5, 2),          square_case(3, 5, 7, 7, 33, 1, 0),
           square_case(2, 64, 6, 6, 40, 1, 0),         square_case(2, 8, 9, 9, 12, 1, 0, 2),
           square_case(2, 6, 9, 8, 7, 3, 1, 2),        square_case(1, 4, 11, 11, 9, 3, 2, 1, 2),
           square_case(2, 4, 10, 13, 8, 3, 1, 2, 2),   square_case(2, 8, 6, 6, 16, 3, 1, 1, 1, 2),
           square_case(2, 9, 7, 6, 9, 3, 1, 1, 1, 9),  square_case(2, 32, 7, 6, 32, 3, 1, 2, 1, 32),
           square_case(1, 6, 5, 5, 12, 3, 1, 1, 1, 6), square_case(2, 12, 8, 8, 6, 3, 2, 2, 1, 3),
           square_case(1, 3, 12, 12, 16, 7, 3, 2),     square_case(2, 2, 4, 4, 3, 2, 0, 3),
           square_case(2, 1, 28, 28, 32, 3, 1),        square_case(3, 3, 16, 15, 48, 3, 1),
           square_case(2, 4, 31, 33, 32, 5, 2, 2),     square_case(1, 7, 9, 20, 20, 2, 3),
       })
    cases.push_back(more);
  cases.push_back({2, 7, 9, 11, 10, 5, 3, {{2, 1}, {1, 2}, {1, 2}, 1}});
  cases.push_back({2, 7, 6, 8, 10, 1, 3, {{1, 1}, {0, 1}, {1, 1}, 1}});
  cases.push_back({2, 3, 20, 17, 16, 3, 4, {{2, 1}, {3, 0}, {2, 1}, 1}});
  cases.push_back(square_case(11, 18, 7, 8, 32, 3, 1, 2));
  cases.push_back({7, 5, 13, 10, 48, 3, 3, {{3, 2}, {2, 1}, {2, 1}, 1}});
  return cases;
}

}  // namespace tandem::test
