// Sign-mask passes over f32 arrays.
#include "kernels/conv/sign_mask.h"

#include "core/parallel.h"
#include "kernels/gemm/scratch.h"
#include "kernels/gemm/simd.h"
#include "kernels/gemm/tasks.h"

#include <algorithm>
#include <cstring>

namespace tandem::kernels {
namespace {

constexpr std::int64_t kStep = 32;        // elements: whole vectors and whole bytes for every width
constexpr std::int64_t kGrain = 1 << 11;  // steps that are worth a thread
constexpr std::int64_t kRowChunk = 256;

}  // namespace

void write_sign_mask(const float* y, std::int64_t count, std::uint8_t* mask) {
  parallel_for((count + kStep - 1) / kStep, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin * kStep; first < std::min(count, end * kStep); first += kStep) {
      std::uint32_t bits = 0;
      for (std::int64_t i = 0; i < kStep; i += simd::kLanes)
        if (first + i < count) bits |= simd::positive_bits(simd::load_partial(y + first + i, count - first - i)) << i;
      std::memcpy(mask + first / 8, &bits, static_cast<std::size_t>((std::min(kStep, count - first) + 7) / 8));
    }
  });
}

void apply_sign_mask(MaskedGradient gradient, std::int64_t count, float* out) {
  parallel_for((count + kStep - 1) / kStep, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin * kStep; first < std::min(count, end * kStep); first += kStep) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, gradient.mask + first / 8, static_cast<std::size_t>((std::min(kStep, count - first) + 7) / 8));
      for (std::int64_t i = 0; i < kStep && first + i < count; i += simd::kLanes) {
        const std::int64_t left = count - first - i;
        simd::store_partial(out + first + i, simd::keep(simd::load_partial(gradient.data + first + i, left), bits >> i),
                            left);
      }
    }
  });
}

void sum_rows(const float* rows, std::int64_t count, std::int64_t k, float* sums) {
  const std::int64_t chunks = (count + kRowChunk - 1) / kRowChunk;
  const Scratch parts(chunks * k);
  for_each_task(chunks, [&](std::int64_t chunk, std::int64_t) {
    float* part = parts.data() + chunk * k;
    std::fill_n(part, k, 0.0f);
    for (std::int64_t row = chunk * kRowChunk; row < std::min(count, (chunk + 1) * kRowChunk); ++row)
      for (std::int64_t i = 0; i < k; ++i) part[i] += rows[row * k + i];
  });
  for (std::int64_t i = 0; i < k; ++i) {
    double sum = 0.0;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += static_cast<double>(parts.data()[chunk * k + i]);
    sums[i] = static_cast<float>(sum);
  }
}

}  // namespace tandem::kernels
