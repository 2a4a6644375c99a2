// exp and erf in f32 without branches or library calls, so that loops over them vectorise.
#pragma once

#include <bit>
#include <cstdint>

namespace tandem::kernels::cpu {

/// exp(x), relative error below 2e-7 for |x| <= 87; beyond it stays at the value there, so that neither it
/// nor its inverse is subnormal (hundreds of times slower). NaN stays NaN.
/// Cody-Waite reduction by ln 2 and the polynomial of Cephes' expf (Moshier).
inline float vector_exp(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 87.0f ? 87.0f : x;
  constexpr float kRoundToInteger = 0x1.8p23f;  // adding it leaves the nearest integer in the low mantissa bits
  const float shifted = x * 1.44269504088896341f + kRoundToInteger;
  const float exponent = shifted - kRoundToInteger;
  float r = x - exponent * 0.693359375f;
  r = r - exponent * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const std::uint32_t biased = std::bit_cast<std::uint32_t>(shifted) + 127u;
  return p * std::bit_cast<float>(biased << 23);
}

/// erf(x), absolute error below 5e-7, with or without fused multiply-adds: x times a rational function of x^2 (minimax
/// on
/// [-4, 4], the coefficients in use in Eigen and XLA); beyond, erf is 1 to within f32. NaN stays NaN.
inline float vector_erf(float x) {
  x = x < -4.0f ? -4.0f : x;
  x = x > 4.0f ? 4.0f : x;
  const float x2 = x * x;
  float p = -2.72614225801306e-10f;
  p = p * x2 + 2.77068142495902e-08f;
  p = p * x2 + -2.10102402082508e-06f;
  p = p * x2 + -5.69250639462346e-05f;
  p = p * x2 + -7.34990630326855e-04f;
  p = p * x2 + -2.95459980854025e-03f;
  p = p * x2 + -1.60960333262415e-02f;
  float q = -1.45660718464996e-05f;
  q = q * x2 + -2.13374055278905e-04f;
  q = q * x2 + -1.68282697438203e-03f;
  q = q * x2 + -7.37332916720468e-03f;
  q = q * x2 + -1.42647390514189e-02f;
  return x * p / q;
}

}  // namespace tandem::kernels::cpu
