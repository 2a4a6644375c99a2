// Copies between dtypes on the CPU, vectorised and threaded.
#include "core/parallel.h"
#include "kernels/cast/cast.h"
#include "kernels/cast/convert.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace tandem::kernels::cpu {

namespace {

template <typename From, typename To>
void convert_run(const From* from, To* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = convert<To>(from[i]);
}

// Both sides of the choice are computed, so that the loop vectorises.
void convert_run(const float* from, BFloat16* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(from[i]);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const std::uint32_t quiet_nan = (bits >> 16) | 0x40u;
    to[i].bits = static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded);
  }
}

#ifdef __F16C__
void convert_run(const float* from, Half* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i packed = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), packed);
  }
  for (; i < count; ++i) to[i] = Half(from[i]);
}

void convert_run(const Half* from, float* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(packed));
  }
  for (; i < count; ++i) to[i] = static_cast<float>(from[i]);
}
#endif

}  // namespace

bool cast_supports(const Tensor& source, const Tensor& destination) {
  return source.device().type == DeviceType::cpu && source.is_dense() && source.strides() == destination.strides();
}

void cast(const Tensor& source, const Tensor& destination) {
  dispatch_all(source.dtype(), "cast", [&](auto from_tag) {
    dispatch_all(destination.dtype(), "cast", [&](auto to_tag) {
      using From = typename decltype(from_tag)::type;
      using To = typename decltype(to_tag)::type;
      const From* const from = source.data<From>();
      To* const to = destination.data<To>();
      parallel_for(source.numel(), std::int64_t{1} << 14,
                   [&](std::int64_t begin, std::int64_t end) { convert_run(from + begin, to + begin, end - begin); });
    });
  });
}

}  // namespace tandem::kernels::cpu
