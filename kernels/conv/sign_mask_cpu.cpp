// Sign-mask passes over f32 arrays.
#include "kernels/conv/sign_mask.h"

#include "core/parallel.h"
#include "kernels/gemm/scratch.h"
#include "kernels/gemm/tasks.h"

#include <algorithm>

namespace tandem::kernels {
namespace {

constexpr std::int64_t kGrain = 1 << 13;  // bytes of mask that are worth a thread
constexpr std::int64_t kRowChunk = 256;

}  // namespace

void write_sign_mask(const float* y, std::int64_t count, std::uint8_t* mask) {
  parallel_for((count + 7) / 8, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t byte = begin; byte < end; ++byte) {
      const std::int64_t bits = std::min<std::int64_t>(8, count - byte * 8);
      unsigned value = 0;
      for (std::int64_t bit = 0; bit < bits; ++bit) value |= (y[byte * 8 + bit] > 0.0f ? 1u : 0u) << bit;
      mask[byte] = static_cast<std::uint8_t>(value);
    }
  });
}

void apply_sign_mask(MaskedGradient gradient, std::int64_t count, float* out) {
  parallel_for((count + 7) / 8, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t byte = begin; byte < end; ++byte) {
      const std::int64_t bits = std::min<std::int64_t>(8, count - byte * 8);
      for (std::int64_t bit = 0; bit < bits; ++bit) {
        const std::int64_t i = byte * 8 + bit;
        out[i] = (gradient.mask[byte] >> bit & 1) != 0 ? gradient.data[i] : 0.0f;
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
