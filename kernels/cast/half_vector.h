// simd.h for half storage: vectors of floats loaded from f16 and bf16, and stored there with one rounding.
#pragma once

#include "tandem/core/half.h"
#include "tandem/kernels/gemm/simd.h"

#include <cstdint>
#include <cstring>

namespace tandem::kernels::simd {

using UintVec = std::uint32_t __attribute__((vector_size(kLanes * 4)));

namespace detail {

/// What targets without instructions for it do.
template <typename T>
inline Vec load_each(const T* from) {
  Vec value{};
  for (int lane = 0; lane < kLanes; ++lane) value[lane] = static_cast<float>(from[lane]);
  return value;
}

template <typename T>
inline void store_each(T* to, Vec value) {
  for (int lane = 0; lane < kLanes; ++lane) to[lane] = T(value[lane]);
}

/// bf16 bits in the lower half of each lane. By integers: the processors' own instruction for it takes subnormals to 0.
[[gnu::always_inline]] inline UintVec bfloat16_bits(Vec value) {
  const UintVec bits = reinterpret_cast<UintVec>(value);
  const UintVec rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const IntVec is_nan = reinterpret_cast<IntVec>(bits & 0x7fffffffu) > 0x7f800000;
  return (is_nan ? bits | 0x400000u : rounded) >> 16;
}

}  // namespace detail

// The maskz forms below are those that GCC 12 does not take for uses of an uninitialised register.

[[gnu::always_inline]] inline Vec load(const Half* from) {
#if defined(__AVX512F__)
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return reinterpret_cast<Vec>(_mm512_maskz_cvtph_ps(0xffff, bits));
#elif defined(__AVX__) && defined(__F16C__)
  return reinterpret_cast<Vec>(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#else
  return detail::load_each(from);
#endif
}

[[gnu::always_inline]] inline void store(Half* to, Vec value) {
#if defined(__AVX512F__)
  const __m256i bits =
      _mm512_maskz_cvtps_ph(0xffff, reinterpret_cast<__m512>(value), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bits);
#elif defined(__AVX__) && defined(__F16C__)
  const __m128i bits = _mm256_cvtps_ph(reinterpret_cast<__m256>(value), _MM_FROUND_TO_NEAREST_INT);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bits);
#else
  detail::store_each(to, value);
#endif
}

[[gnu::always_inline]] inline Vec load(const BFloat16* from) {
#if defined(__AVX512F__)
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return reinterpret_cast<Vec>(reinterpret_cast<UintVec>(_mm512_maskz_cvtepu16_epi32(0xffff, bits)) << 16);
#elif defined(__AVX2__)
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return reinterpret_cast<Vec>(reinterpret_cast<UintVec>(_mm256_cvtepu16_epi32(bits)) << 16);
#else
  return detail::load_each(from);
#endif
}

[[gnu::always_inline]] inline void store(BFloat16* to, Vec value) {
#if defined(__AVX512F__)
  const auto bits = reinterpret_cast<__m512i>(detail::bfloat16_bits(value));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_maskz_cvtepi32_epi16(0xffff, bits));
#elif defined(__AVX2__)
  const auto bits = reinterpret_cast<__m256i>(detail::bfloat16_bits(value));
  const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), packed);
#else
  detail::store_each(to, value);
#endif
}

/// The first `count` lanes, at most all of them; the others are zero.
template <typename T>
[[gnu::always_inline]] inline Vec load_partial(const T* from, std::int64_t count) {
  if (count >= kLanes) return load(from);
  T values[kLanes] = {};
  std::memcpy(values, from, static_cast<std::size_t>(count) * sizeof(T));
  return load(values);
}

template <typename T>
[[gnu::always_inline]] inline void store_partial(T* to, Vec value, std::int64_t count) {
  if (count >= kLanes) return store(to, value);
  T values[kLanes];
  store(values, value);
  std::memcpy(to, values, static_cast<std::size_t>(count) * sizeof(T));
}

/// The largest float that rounds to 0 where it is stored as T.
template <typename T>
inline constexpr float kRoundsToZero = 0.0f;
template <>
inline constexpr float kRoundsToZero<Half> = 0x1p-25f;
template <>
inline constexpr float kRoundsToZero<BFloat16> = 0x1p-134f;

/// Bit i is set where lane i is above zero once it is stored as T.
template <typename T>
[[gnu::always_inline]] inline std::uint32_t stored_positive_bits(Vec value) {
  return bits_above(value, kRoundsToZero<T>);
}

}  // namespace tandem::kernels::simd
