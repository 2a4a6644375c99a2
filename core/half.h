// Two-byte floating-point storage types: IEEE binary16 and bfloat16. Arithmetic happens in float.
// Example:
//     const float rounded = Half(0.1f);      // 0.0999756
//     const float shorter = BFloat16(0.1f);  // 0.100098
//     const Half sum(rounded + shorter);
#pragma once

#include <bit>
#include <cstdint>

namespace tandem {

namespace detail {

/// float -> binary16 bits, round to nearest even; overflow gives infinity, NaN stays NaN (quiet).
constexpr std::uint16_t float_to_half_bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // rounds to 2^16 or beyond
  if (magnitude >= 0x38800000u) {                                                   // normal in binary16
    const std::uint32_t rebased = magnitude - 0x38000000u;
    const std::uint32_t rounded = rebased + 0xfffu + ((rebased >> 13) & 1u);
    return static_cast<std::uint16_t>(sign | (rounded >> 13));
  }
  if (magnitude < 0x33000000u) return sign;  // below half of the smallest subnormal
  const std::uint32_t exponent = magnitude >> 23;
  const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  const std::uint32_t shift = 126u - exponent;
  const std::uint32_t kept = mantissa >> shift;
  const std::uint32_t rest = mantissa & ((1u << shift) - 1u);
  const std::uint32_t halfway = 1u << (shift - 1u);
  const std::uint32_t up = (rest > halfway || (rest == halfway && (kept & 1u))) ? 1u : 0u;
  return static_cast<std::uint16_t>(sign | (kept + up));
}

/// binary16 bits -> float, exact.
constexpr float half_bits_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

/// float -> bfloat16 bits, round to nearest even; NaN stays NaN (quiet).
constexpr std::uint16_t float_to_bfloat16_bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// bfloat16 bits -> float, exact.
constexpr float bfloat16_bits_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace detail

/// IEEE 754 binary16, storage only: converts from and to float, rounding to nearest even.
struct Half {
  std::uint16_t bits = 0;  ///< sign, 5 bits of exponent, 10 of fraction

  constexpr Half() = default;
  /// Rounds to nearest even; beyond 65504 it is infinite from 65520 on.
  constexpr explicit Half(float value) : bits(detail::float_to_half_bits(value)) {}
  /// Exact.
  constexpr operator float() const { return detail::half_bits_to_float(bits); }
};

/// bfloat16 (the upper half of a binary32), storage only: converts from and to float, rounding to nearest even.
struct BFloat16 {
  std::uint16_t bits = 0;  ///< sign, 8 bits of exponent, 7 of fraction

  constexpr BFloat16() = default;
  /// Rounds to nearest even.
  constexpr explicit BFloat16(float value) : bits(detail::float_to_bfloat16_bits(value)) {}
  /// Exact.
  constexpr operator float() const { return detail::bfloat16_bits_to_float(bits); }
};

}  // namespace tandem
