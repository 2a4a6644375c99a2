// The small linear maps of Winograd convolution with 3-tap kernels, F(2,3) and F(4,3), in one and two dimensions.
//
// For an output tile of m values, y = A^T [(G g) * (B^T d)] (Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks", 2016): m + 2 products in place of 3m. The gradient of the same bilinear form with respect to g is
// G^T [(A dy) * (B^T d)]. Two dimensions apply each map to columns and rows.
#pragma once

#include "kernels/gemm/simd.h"

namespace tandem::kernels::winograd {

using simd::Vec;

template <int kOutputs>
struct Transforms;

/// Interpolation at 0, +-1, +-2 and infinity.
template <>
struct Transforms<4> {
  static constexpr int kSize = 6;

  struct Input {  // B^T: 6 -> 6
    [[gnu::always_inline]] static void apply(const Vec* d, Vec* out) {
      const Vec even1 = d[4] - 4.0f * d[2], odd1 = d[3] - 4.0f * d[1];
      const Vec even2 = d[4] - d[2], odd2 = d[3] - d[1];
      out[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
      out[1] = even1 + odd1;
      out[2] = even1 - odd1;
      out[3] = even2 + 2.0f * odd2;
      out[4] = even2 - 2.0f * odd2;
      out[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
    }
  };
  struct Output {  // A^T: 6 -> 4
    [[gnu::always_inline]] static void apply(const Vec* m, Vec* out) {
      const Vec even1 = m[1] + m[2], odd1 = m[1] - m[2];
      const Vec even2 = m[3] + m[4], odd2 = m[3] - m[4];
      out[0] = m[0] + even1 + even2;
      out[1] = odd1 + 2.0f * odd2;
      out[2] = even1 + 4.0f * even2;
      out[3] = odd1 + 8.0f * odd2 + m[5];
    }
  };
  struct Gradient {  // A: 4 -> 6
    [[gnu::always_inline]] static void apply(const Vec* y, Vec* out) {
      const Vec even1 = y[0] + y[2], odd1 = y[1] + y[3];
      const Vec even2 = y[0] + 4.0f * y[2], odd2 = 2.0f * y[1] + 8.0f * y[3];
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
      const Vec even1 = (g[0] + g[2]) * kSixth, odd1 = g[1] * kSixth;
      const Vec even2 = (g[0] + 4.0f * g[2]) * kTwentyFourth, odd2 = g[1] * kTwelfth;
      out[0] = 0.25f * g[0];
      out[1] = -even1 - odd1;
      out[2] = odd1 - even1;
      out[3] = even2 + odd2;
      out[4] = even2 - odd2;
      out[5] = g[2];
    }
  };
  struct WeightGradient {  // G^T: 6 -> 3
    [[gnu::always_inline]] static void apply(const Vec* u, Vec* out) {
      const Vec even1 = u[1] + u[2], odd1 = u[1] - u[2];
      const Vec even2 = u[3] + u[4], odd2 = u[3] - u[4];
      out[0] = 0.25f * u[0] - kSixth * even1 + kTwentyFourth * even2;
      out[1] = kTwelfth * odd2 - kSixth * odd1;
      out[2] = kSixth * (even2 - even1) + u[5];
    }
  };

 private:
  static constexpr float kSixth = 1.0f / 6, kTwelfth = 1.0f / 12, kTwentyFourth = 1.0f / 24;
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
