// Float vectors of the width the target offers, written with the compilers' vector extensions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace tandem::kernels::simd {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

using Vec = float __attribute__((vector_size(kLanes * 4)));
using IntVec = std::int32_t __attribute__((vector_size(kLanes * 4)));

[[gnu::always_inline]] inline Vec load(const float* from) {
  Vec value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

[[gnu::always_inline]] inline void store(float* to, Vec value) { std::memcpy(to, &value, sizeof value); }

/// The first `count` lanes, at most all of them; the others are zero.
[[gnu::always_inline]] inline Vec load_partial(const float* from, std::int64_t count) {
  if (count >= kLanes) return load(from);
  Vec value{};
  std::memcpy(&value, from, static_cast<std::size_t>(count) * sizeof(float));
  return value;
}

[[gnu::always_inline]] inline void store_partial(float* to, Vec value, std::int64_t count) {
  if (count >= kLanes) return store(to, value);
  std::memcpy(to, &value, static_cast<std::size_t>(count) * sizeof(float));
}

/// Stores past the caches where `to` is aligned and the target can: for results larger than the caches, which are then
/// not read before they are overwritten. Needs finish_streams() before another thread reads them.
[[gnu::always_inline]] inline void stream(float* to, Vec value) {
#if defined(__AVX512F__)
  if (reinterpret_cast<std::uintptr_t>(to) % sizeof(Vec) == 0)
    return _mm512_stream_ps(to, reinterpret_cast<__m512>(value));
#endif
  store(to, value);
}

inline void finish_streams() {
#if defined(__AVX512F__)
  _mm_sfence();
#endif
}

namespace detail {
template <int... Lane>
[[gnu::always_inline]] inline Vec broadcast(float value, std::integer_sequence<int, Lane...>) {
  return Vec{(static_cast<void>(Lane), value)...};
}
template <int... Lane>
[[gnu::always_inline]] inline IntVec lane_bits(std::integer_sequence<int, Lane...>) {
  return IntVec{(1 << Lane)...};
}
}  // namespace detail

/// All lanes equal. (`Vec{} + value` would keep an addition, because of -0.)
[[gnu::always_inline]] inline Vec broadcast(float value) {
  return detail::broadcast(value, std::make_integer_sequence<int, kLanes>{});
}

/// Zero where negative; NaN stays NaN.
[[gnu::always_inline]] inline Vec relu(Vec value) { return value < Vec{} ? Vec{} : value; }

/// Bit i is set where lane i is above `limit`.
[[gnu::always_inline]] inline std::uint32_t bits_above(Vec value, float limit) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(reinterpret_cast<__m512>(value), _mm512_set1_ps(limit), _CMP_GT_OQ);
#elif defined(__AVX__)
  const __m256 above = _mm256_cmp_ps(reinterpret_cast<__m256>(value), _mm256_set1_ps(limit), _CMP_GT_OQ);
  return static_cast<std::uint32_t>(_mm256_movemask_ps(above));
#else
  std::uint32_t bits = 0;
  for (int lane = 0; lane < kLanes; ++lane) bits |= (value[lane] > limit ? 1u : 0u) << lane;
  return bits;
#endif
}

/// Bit i is set where lane i is above zero.
[[gnu::always_inline]] inline std::uint32_t positive_bits(Vec value) { return bits_above(value, 0.0f); }

/// Lane i where bit i is set, zero elsewhere.
[[gnu::always_inline]] inline Vec keep(Vec value, std::uint32_t bits) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vec>(_mm512_maskz_mov_ps(static_cast<__mmask16>(bits), reinterpret_cast<__m512>(value)));
#else
  const IntVec lane_bits = detail::lane_bits(std::make_integer_sequence<int, kLanes>{});
  const IntVec chosen = (lane_bits & static_cast<std::int32_t>(bits)) != 0;
  return reinterpret_cast<Vec>(reinterpret_cast<IntVec>(value) & chosen);
#endif
}

/// The kLanes bits of a bit mask that start at element `index`, a multiple of 8; needs kLanes >= 8.
[[gnu::always_inline]] inline std::uint32_t load_bits(const std::uint8_t* mask, std::int64_t index) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, mask + index / 8, kLanes / 8);
  return bits;
}

[[gnu::always_inline]] inline void store_bits(std::uint8_t* mask, std::int64_t index, std::uint32_t bits) {
  std::memcpy(mask + index / 8, &bits, kLanes / 8);
}

/// True if load_bits and store_bits serve rows of `length` elements: no vector shares a byte with another row.
constexpr bool rows_have_whole_bytes(std::int64_t length) { return kLanes >= 8 && length % kLanes == 0; }

}  // namespace tandem::kernels::simd
