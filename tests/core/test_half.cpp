// Half types: every encoding, ties, overflow, against the compiler's own _Float16 where there is one.
#include "tandem/core/half.h"

#include "tandem/core/random.h"
#include "tests/support/catch.h"

#include <cmath>
#include <limits>

using namespace tandem;

namespace {

Half half_of_bits(unsigned bits) {
  Half half;
  half.bits = static_cast<std::uint16_t>(bits);
  return half;
}

BFloat16 bfloat16_of_bits(unsigned bits) {
  BFloat16 value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}

/// The value of a binary16 encoding, by the definition.
double half_by_definition(unsigned bits) {
  const double sign = bits & 0x8000u ? -1.0 : 1.0;
  const int exponent = static_cast<int>((bits >> 10) & 31u);
  const double mantissa = bits & 1023u;
  if (exponent == 31) return mantissa == 0.0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024.0 + mantissa, exponent - 25);
}

}  // namespace

TEST_CASE("every binary16 encoding has its defined value and survives the round trip") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float value = half_of_bits(bits);
    const double expected = half_by_definition(bits);
    if (std::isnan(expected)) {
      const Half back(value);
      wrong += !std::isnan(value) || !std::isnan(static_cast<float>(back));
    } else {
      wrong += static_cast<double>(value) != expected || Half(value).bits != bits;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("halfway between two binary16 numbers goes to the even one, a little off goes to the nearer") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 0x7c00; ++bits) {
    const float low = half_of_bits(bits);
    const double high = bits + 1 == 0x7c00 ? 65536.0 : half_by_definition(bits + 1);
    const float middle = static_cast<float>((static_cast<double>(low) + high) / 2.0);  // exact: one bit more
    const unsigned even = bits % 2 == 0 ? bits : bits + 1;
    wrong += Half(middle).bits != even;
    wrong += Half(-middle).bits != (even | 0x8000u);
    wrong += Half(std::nextafter(middle, 0.0f)).bits != bits;
    wrong += Half(std::nextafter(middle, 1e9f)).bits != bits + 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("binary16 overflows to infinity and underflows to a signed zero") {
  CHECK(Half(65519.996f).bits == 0x7bff);
  CHECK(Half(65520.0f).bits == 0x7c00);
  CHECK(Half(-1e30f).bits == 0xfc00);
  CHECK(Half(std::numeric_limits<float>::infinity()).bits == 0x7c00);
  CHECK(Half(0x1p-25f).bits == 0);
  CHECK(Half(std::nextafter(0x1p-25f, 1.0f)).bits == 1);
  CHECK(Half(-0x1p-30f).bits == 0x8000);
  CHECK(Half(std::numeric_limits<float>::denorm_min()).bits == 0);
}

#if defined(__FLT16_MAX__) && defined(__GNUC__) && !defined(__clang__)
TEST_CASE("float to binary16 agrees with the compiler's _Float16 over random floats") {
  __extension__ using Float16 = _Float16;
  const RandomKey key{.seed = 7};
  int wrong = 0;
  for (std::uint64_t i = 0; i < 400000; ++i) {
    const float any = std::bit_cast<float>(key.bits(2 * i));
    // Spread over the exponents that binary16 has, and its subnormals.
    const float near = std::ldexp(0.5f + key.uniform(2 * i + 1), static_cast<int>(key.bits(2 * i) % 44u) - 27);
    for (const float value : {any, near}) {
      if (std::isnan(value)) continue;
      wrong += Half(value).bits != std::bit_cast<std::uint16_t>(static_cast<Float16>(value));
    }
  }
  CHECK(wrong == 0);
}
#endif

TEST_CASE("every bfloat16 encoding survives the round trip; ties go to even") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float value = bfloat16_of_bits(bits);
    if (std::isnan(value)) {
      wrong += !std::isnan(static_cast<float>(BFloat16(value)));
      continue;
    }
    wrong += BFloat16(value).bits != bits;
    if ((bits & 0x7fffu) >= 0x7f80u) continue;
    const float middle = std::bit_cast<float>((bits << 16) | 0x8000u);
    const unsigned even = bits % 2 == 0 ? bits : bits + 1;
    wrong += BFloat16(middle).bits != even;
    wrong += BFloat16(std::bit_cast<float>((bits << 16) | 0x7fffu)).bits != bits;
    wrong += BFloat16(std::bit_cast<float>((bits << 16) | 0x8001u)).bits != bits + 1;
  }
  CHECK(wrong == 0);
  CHECK(BFloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
}

TEST_CASE("NaN with only low payload bits stays NaN in both half types") {
  const float nan = std::bit_cast<float>(0x7f800001u);
  CHECK(std::isnan(static_cast<float>(Half(nan))));
  CHECK(std::isnan(static_cast<float>(BFloat16(nan))));
}
