// How sure a network is of a row of logits, with the same bits on all devices: a product and a sum are never rounded at
// once, as the files that include this are compiled without fused multiply-adds, and the exponential is our own.
//
// constexpr, so that nvcc takes them for device code as well.
#pragma once

#include <bit>
#include <cstdint>

namespace tandem::kernels {

/// e^x for x <= 0, to 1 or 2 units in the last place; 0 below -700.
constexpr double exp_of_negative(double x) {
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2High = 0x1.62e42feep-1,
                   kLn2Low = 0x1.a39ef35793c76p-33;  // the first of so few bits that n * it is exact
  if (!(x >= -700.0)) return 0.0;
  const auto n = static_cast<std::int64_t>(x * kLog2E - 0.5);  // the nearest whole number
  const double r = (x - static_cast<double>(n) * kLn2High) - static_cast<double>(n) * kLn2Low;
  // The Taylor series: |r| is at most ln 2 / 2, to which the first power that is left out adds 4e-18.
  constexpr double kInverseFactorials[] = {
      1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
      1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  double sum = 0.0;
  for (int k = 13; k >= 0; --k) sum = sum * r + kInverseFactorials[k];
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(1023 + n) << 52);
}

/// So many sums are made of a row's exponentials, of its elements by turns, which then are added up in pairs: 0 and 16,
/// 1 and 17 ..., of these 0 and 8, and so on.
constexpr int kConfidenceSums = 32;

/// Numbers in the order of the largest probability that a softmax gives the elements of a row, of which `largest` is
/// the greatest and `sum` the sum of e^(element - largest); 0 where there are NaN, or the greatest is infinite.
constexpr std::uint64_t confidence_key(double largest, double sum, bool has_nan) {
  if (has_nan || largest - largest != 0.0) return 0;
  return std::bit_cast<std::uint64_t>(1.0 / sum);  // positive numbers are in the order of their bits
}

}  // namespace tandem::kernels
