// The inner loop of every matrix product on the CPU: one tile of C held in registers.
#pragma once

#include "tandem/kernels/gemm/simd.h"

#include <array>
#include <cstdint>

namespace tandem::kernels::tiling {

/// A panel of B and of C is two vectors wide; a tile has as many rows as the registers then hold.
inline constexpr int kPanelVectors = 2;
inline constexpr int kPanel = kPanelVectors * simd::kLanes;
#if defined(__AVX512F__)
inline constexpr int kTileRows = 14;  // 28 of 32 registers
#elif defined(__aarch64__)
inline constexpr int kTileRows = 12;  // 24 of 32
#else
inline constexpr int kTileRows = 6;  // 12 of 16
#endif

/// Where the operands of a tile lie; all distances in floats.
/// A(i, k) = a[i * a_row + (k / segment) * a_segment + (k % segment) * a_k], k < segments * segment;
/// B(k, v) = the vector at b[k * b_k + v * b_vector]; C(i, v) likewise.
struct TileOperands {
  const float* a;
  std::int64_t a_row, a_k, a_segment;
  std::int64_t segments, segment;
  const float* b;
  std::int64_t b_k, b_vector;
  float* c;
  std::int64_t c_row, c_vector;
  bool accumulate;  // C += AB instead of C = AB
};

/// Computes a tile of kRows rows and kVectors vectors. Inlined so that distances known to the caller become constants.
template <int kRows, int kVectors>
[[gnu::always_inline]] inline void multiply_tile(const TileOperands& operands) {
  simd::Vec sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[i][v] = simd::Vec{};

  const float* b = operands.b;
  for (std::int64_t s = 0; s < operands.segments; ++s) {
    const float* a = operands.a + s * operands.a_segment;
    for (std::int64_t k = 0; k < operands.segment; ++k, a += operands.a_k, b += operands.b_k) {
      simd::Vec row[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) row[v] = simd::load(b + v * operands.b_vector);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const simd::Vec factor = simd::broadcast(a[i * operands.a_row]);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[i][v] += factor * row[v];
      }
    }
  }

#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* c = operands.c + i * operands.c_row + v * operands.c_vector;
      simd::store(c, operands.accumulate ? simd::load(c) + sums[i][v] : sums[i][v]);
    }
}

namespace detail {
template <typename Function, template <int> class Kernel, int... Rows>
constexpr std::array<Function, sizeof...(Rows)> kernel_table(std::integer_sequence<int, Rows...>) {
  return {&Kernel<Rows + 1>::run...};
}
}  // namespace detail

/// Kernel<1>::run ... Kernel<kTileRows>::run, to be called by number of rows - 1.
template <typename Function, template <int> class Kernel>
inline constexpr auto kKernelByRows =
    detail::kernel_table<Function, Kernel>(std::make_integer_sequence<int, kTileRows>{});

/// Calls visit(first, rows) for [0, count) cut into the fewest tiles of nearly equal height.
template <typename Visit>
inline void for_each_row_tile(std::int64_t count, Visit&& visit) {
  const std::int64_t tiles = (count + kTileRows - 1) / kTileRows;
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t first = count * t / tiles;
    visit(first, count * (t + 1) / tiles - first);
  }
}

}  // namespace tandem::kernels::tiling
