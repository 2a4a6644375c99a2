// The small linear maps of Winograd convolution with 3-tap kernels, F(2,3) and F(4,3), in one and two dimensions.
//
// For an output tile of m values, y = A^T [(G g) * (B^T d)] (Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks", 2016): m + 2 products in place of 3m. The gradient of the same bilinear form with respect to g is
// G^T [(A dy) * (B^T d)]. Two dimensions apply each map to columns and rows.
#pragma once

#include "tandem/kernels/gemm/simd.h"

namespace tandem::kernels::winograd {

using simd::Vec;

template <int kOutputs>
struct Transforms;

/// Interpolation at 0, +-a, +-b and infinity with a = 5/8 and b = 3/2. The error in f32 is 2.1 times less than with the
/// usual +-1 and +-2, for as many operations: magnitudes within a transform differ less. It is about the same for all
/// a between 0.6 and 0.7 and b between 1.4 and 1.6 (Alam et al., "Winograd convolution for deep neural networks:
/// Efficient point selection", 2022, find the like); of these the constants of B and A are exact in f32.
template <>
struct Transforms<4> {
  static constexpr int kSize = 6;

  struct Input {  // B^T: 6 -> 6
    [[gnu::always_inline]] static void apply(const Vec* d, Vec* out) {
      const Vec even1 = d[4] - kB2 * d[2], odd1 = d[3] - kB2 * d[1];
      const Vec even2 = d[4] - kA2 * d[2], odd2 = d[3] - kA2 * d[1];
      out[0] = kA2 * kB2 * d[0] - (kA2 + kB2) * d[2] + d[4];
      out[1] = even1 + kA * odd1;
      out[2] = even1 - kA * odd1;
      out[3] = even2 + kB * odd2;
      out[4] = even2 - kB * odd2;
      out[5] = kA2 * kB2 * d[1] - (kA2 + kB2) * d[3] + d[5];
    }
  };
  struct Output {  // A^T: 6 -> 4
    [[gnu::always_inline]] static void apply(const Vec* m, Vec* out) {
      const Vec even1 = m[1] + m[2], odd1 = m[1] - m[2];
      const Vec even2 = m[3] + m[4], odd2 = m[3] - m[4];
      out[0] = m[0] + even1 + even2;
      out[1] = kA * odd1 + kB * odd2;
      out[2] = kA2 * even1 + kB2 * even2;
      out[3] = kA * kA2 * odd1 + kB * kB2 * odd2 + m[5];
    }
  };
  struct Gradient {  // A: 4 -> 6
    [[gnu::always_inline]] static void apply(const Vec* y, Vec* out) {
      const Vec even1 = y[0] + kA2 * y[2], odd1 = kA * y[1] + kA * kA2 * y[3];
      const Vec even2 = y[0] + kB2 * y[2], odd2 = kB * y[1] + kB * kB2 * y[3];
      out[0] = y[0];
      out[1] = even1 + odd1;
      out[2] = even1 - odd1;
      out[3] = even2 + odd2;
      out[4] = even2 - odd2;
      out[5] = y[3];
    }
  };
  struct Weight {  // G: 3 -> 6
    [[gnu::always_inline]] static void apply(const Vec* g, Vec* out) {
      const Vec even1 = kNa * g[0] + kNa * kA2 * g[2], odd1 = kNa * kA * g[1];
      const Vec even2 = kNb * g[0] + kNb * kB2 * g[2], odd2 = kNb * kB * g[1];
      out[0] = kN0 * g[0];
      out[1] = even1 + odd1;
      out[2] = even1 - odd1;
      out[3] = even2 + odd2;
      out[4] = even2 - odd2;
      out[5] = g[2];
    }
  };
  struct WeightGradient {  // G^T: 6 -> 3
    [[gnu::always_inline]] static void apply(const Vec* u, Vec* out) {
      const Vec even1 = u[1] + u[2], odd1 = u[1] - u[2];
      const Vec even2 = u[3] + u[4], odd2 = u[3] - u[4];
      out[0] = kN0 * u[0] + kNa * even1 + kNb * even2;
      out[1] = kNa * kA * odd1 + kNb * kB * odd2;
      out[2] = kNa * kA2 * even1 + kNb * kB2 * even2 + u[5];
    }
  };

 private:
  static constexpr float kA = 0.625f, kB = 1.5f, kA2 = kA * kA, kB2 = kB * kB;
  // One over the derivative of x (x^2 - a^2) (x^2 - b^2) at 0, +-a and +-b.
  static constexpr float kN0 = 1 / (kA2 * kB2), kNa = 1 / (2 * kA2 * (kA2 - kB2)), kNb = 1 / (2 * kB2 * (kB2 - kA2));
};

/// Interpolation at 0, +-1 and infinity.
template <>
struct Transforms<2> {
  static constexpr int kSize = 4;

  struct Input {  // B^T: 4 -> 4
    [[gnu::always_inline]] static void apply(const Vec* d, Vec* out) {
      out[0] = d[0] - d[2];
      out[1] = d[1] + d[2];
      out[2] = d[2] - d[1];
      out[3] = d[1] - d[3];
    }
  };
  struct Output {  // A^T: 4 -> 2
    [[gnu::always_inline]] static void apply(const Vec* m, Vec* out) {
      out[0] = m[0] + m[1] + m[2];
      out[1] = m[1] - m[2] - m[3];
    }
  };
  struct Gradient {  // A: 2 -> 4
    [[gnu::always_inline]] static void apply(const Vec* y, Vec* out) {
      out[0] = y[0];
      out[1] = y[0] + y[1];
      out[2] = y[0] - y[1];
      out[3] = -y[1];
    }
  };
  struct Weight {  // G: 3 -> 4
    [[gnu::always_inline]] static void apply(const Vec* g, Vec* out) {
      const Vec even = 0.5f * (g[0] + g[2]), odd = 0.5f * g[1];
      out[0] = g[0];
      out[1] = even + odd;
      out[2] = even - odd;
      out[3] = g[2];
    }
  };
  struct WeightGradient {  // G^T: 4 -> 3
    [[gnu::always_inline]] static void apply(const Vec* u, Vec* out) {
      const Vec even = 0.5f * (u[1] + u[2]);
      out[0] = u[0] + even;
      out[1] = 0.5f * (u[1] - u[2]);
      out[2] = even + u[3];
    }
  };
};

/// out = T in T^T for the one-dimensional map T, kFrom -> kTo values.
template <typename Map, int kFrom, int kTo>
[[gnu::always_inline]] inline void transform(const Vec (&in)[kFrom][kFrom], Vec (&out)[kTo][kTo]) {
  Vec half[kTo][kFrom];
#pragma GCC unroll 8
  for (int j = 0; j < kFrom; ++j) {
    Vec column[kFrom], mapped[kTo];
#pragma GCC unroll 8
    for (int i = 0; i < kFrom; ++i) column[i] = in[i][j];
    Map::apply(column, mapped);
#pragma GCC unroll 8
    for (int i = 0; i < kTo; ++i) half[i][j] = mapped[i];
  }
#pragma GCC unroll 8
  for (int i = 0; i < kTo; ++i) Map::apply(half[i], out[i]);
}

}  // namespace tandem::kernels::winograd
