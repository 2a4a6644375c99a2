// Dropout of dense f32 tensors: many Philox blocks side by side, as loops that compilers turn into vectors.
#include "core/parallel.h"
#include "kernels/dropout/dropout.h"

#include <array>

namespace tandem::kernels::cpu {

namespace {

constexpr int kBlocks = 32;                   // Philox blocks computed together: enough for the loops to stay loops
constexpr std::int64_t kGroup = 4 * kBlocks;  // elements they serve

using Words = std::array<std::uint32_t, kBlocks>;

/// The words of elements [4 * first_block, 4 * first_block + kGroup): word k of block b goes to bits[4 * b + k].
void philox_words(const RandomKey& key, std::uint64_t first_block, std::uint32_t* __restrict bits) {
  Words c0, c1, c2, c3;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const std::uint64_t block = first_block + i;
    c0[i] = static_cast<std::uint32_t>(block);
    c1[i] = static_cast<std::uint32_t>(block >> 32);
    c2[i] = static_cast<std::uint32_t>(key.stream);
    c3[i] = key.step;
  }
  auto k0 = static_cast<std::uint32_t>(key.seed), k1 = static_cast<std::uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < kBlocks; ++i) {
      const std::uint64_t a = std::uint64_t{0xD2511F53u} * c0[i];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * c2[i];
      const std::uint32_t old_c1 = c1[i], old_c3 = c3[i];
      c0[i] = static_cast<std::uint32_t>(b >> 32) ^ old_c1 ^ k0;
      c1[i] = static_cast<std::uint32_t>(b);
      c2[i] = static_cast<std::uint32_t>(a >> 32) ^ old_c3 ^ k1;
      c3[i] = static_cast<std::uint32_t>(a);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (std::size_t i = 0; i < kBlocks; ++i) {
    bits[4 * i] = c0[i];
    bits[4 * i + 1] = c1[i];
    bits[4 * i + 2] = c2[i];
    bits[4 * i + 3] = c3[i];
  }
}

}  // namespace

bool supports_dropout(const Tensor& x, const Tensor& y) {
  return x.dtype() == DType::f32 && x.is_dense(Layout::channels_last) && y.is_dense(Layout::channels_last);
}

void dropout_forward(const Tensor& x, double p, const RandomKey& key, const Tensor& y) {
  const std::uint32_t threshold = detail::dropout_threshold(p);
  const auto scale = static_cast<float>(p < 1.0 ? 1.0 / (1.0 - p) : 0.0);
  const std::int64_t count = x.numel();
  const float* const from = x.data<float>();
  float* const to = y.data<float>();
  parallel_for((count + kGroup - 1) / kGroup, 64, [&](std::int64_t begin, std::int64_t end) {
    std::array<std::uint32_t, kGroup> bits;
    for (std::int64_t group = begin; group < end; ++group) {
      philox_words(key, static_cast<std::uint64_t>(group) * kBlocks, bits.data());
      const std::int64_t first = group * kGroup, length = std::min(kGroup, count - first);
      for (std::int64_t i = 0; i < length; ++i) {
        const bool kept = bits[static_cast<std::size_t>(i)] >> 8 >= threshold;
        to[first + i] = kept ? from[first + i] * scale : 0.0f;
      }
    }
  });
}

}  // namespace tandem::kernels::cpu
