// Sign-mask passes over arrays of floats and halves.
#include "tandem/kernels/conv/sign_mask.h"

#include "tandem/core/parallel.h"
#include "tandem/kernels/cast/half_vector.h"
#include "tandem/kernels/gemm/scratch.h"
#include "tandem/kernels/gemm/tasks.h"

#include <algorithm>
#include <cstring>

namespace tandem::kernels {
namespace {

constexpr std::int64_t kStep = 32;        // elements: whole vectors and whole bytes for every width
constexpr std::int64_t kGrain = 1 << 11;  // steps that are worth a thread
constexpr std::int64_t kRowChunk = 256;

}  // namespace

template <typename T>
void write_sign_mask(const T* y, std::int64_t count, std::uint8_t* mask) {
  parallel_for((count + kStep - 1) / kStep, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin * kStep; first < std::min(count, end * kStep); first += kStep) {
      std::uint32_t bits = 0;
      for (std::int64_t i = 0; i < kStep; i += simd::kLanes)
        if (first + i < count) bits |= simd::positive_bits(simd::load_partial(y + first + i, count - first - i)) << i;
      std::memcpy(mask + first / 8, &bits, static_cast<std::size_t>((std::min(kStep, count - first) + 7) / 8));
    }
  });
}

template <typename T, typename Out>
void apply_sign_mask(MaskedGradient<T> gradient, std::int64_t count, Out* out) {
  parallel_for((count + kStep - 1) / kStep, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin * kStep; first < std::min(count, end * kStep); first += kStep) {
      std::uint32_t bits = ~std::uint32_t{0};
      if (gradient.mask != nullptr)
        std::memcpy(&bits, gradient.mask + first / 8,
                    static_cast<std::size_t>((std::min(kStep, count - first) + 7) / 8));
      for (std::int64_t i = 0; i < kStep && first + i < count; i += simd::kLanes) {
        const std::int64_t left = count - first - i;
        simd::store_partial(out + first + i, simd::keep(simd::load_partial(gradient.data + first + i, left), bits >> i),
                            left);
      }
    }
  });
}

template <typename T>
void sum_rows(const T* rows, std::int64_t count, std::int64_t k, float* sums) {
  const std::int64_t chunks = (count + kRowChunk - 1) / kRowChunk;
  const Scratch parts(chunks * k);
  for_each_task(chunks, [&](std::int64_t chunk, std::int64_t) {
    float* part = parts.data() + chunk * k;
    std::fill_n(part, k, 0.0f);
    for (std::int64_t row = chunk * kRowChunk; row < std::min(count, (chunk + 1) * kRowChunk); ++row)
      for (std::int64_t i = 0; i < k; i += simd::kLanes) {
        const std::int64_t left = k - i;
        simd::store_partial(part + i, simd::load_partial(part + i, left) + simd::load_partial(rows + row * k + i, left),
                            left);
      }
  });
  for (std::int64_t i = 0; i < k; ++i) {
    double sum = 0.0;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += static_cast<double>(parts.data()[chunk * k + i]);
    sums[i] = static_cast<float>(sum);
  }
}

template void write_sign_mask(const float*, std::int64_t, std::uint8_t*);
template void write_sign_mask(const Half*, std::int64_t, std::uint8_t*);
template void write_sign_mask(const BFloat16*, std::int64_t, std::uint8_t*);
template void apply_sign_mask(MaskedGradient<float>, std::int64_t, float*);
template void apply_sign_mask(MaskedGradient<Half>, std::int64_t, float*);
template void apply_sign_mask(MaskedGradient<Half>, std::int64_t, Half*);
template void apply_sign_mask(MaskedGradient<BFloat16>, std::int64_t, float*);
template void apply_sign_mask(MaskedGradient<BFloat16>, std::int64_t, BFloat16*);
template void sum_rows(const float*, std::int64_t, std::int64_t, float*);
template void sum_rows(const Half*, std::int64_t, std::int64_t, float*);
template void sum_rows(const BFloat16*, std::int64_t, std::int64_t, float*);

}  // namespace tandem::kernels
