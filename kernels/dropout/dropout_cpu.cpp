// Dropout of dense tensors of floats or halves: many Philox blocks side by side, as loops that compilers turn into
// vectors.
#include "tandem/core/parallel.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/dropout/dropout_implementations.h"

#include <array>
#include <cstring>

namespace tandem::kernels::cpu {

namespace {

/// Eight 32-bit words, each in the lower half of a lane, so that one multiplication gives both halves of a product.
/// What is in the upper halves does not matter.
using Words = std::uint64_t __attribute__((vector_size(64)));

constexpr std::int64_t kLanes = 8;   // blocks that one vector serves
constexpr std::size_t kVectors = 2;  // vectors worked on together, to hide the latency of multiplications
constexpr std::int64_t kBlocks = kVectors * kLanes;
constexpr std::int64_t kGroup = 4 * kBlocks;  // elements they serve

/// The random words of elements [4 * first_block, 4 * first_block + kGroup), in order: philox4x32 of many blocks at
/// once.
void philox_words(const RandomKey& key, std::uint64_t first_block, std::uint32_t* bits) {
  constexpr std::uint64_t kLow = 0xffffffffu;
  Words c0[kVectors], c1[kVectors], c2[kVectors], c3[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) {
    const Words block = Words{0, 1, 2, 3, 4, 5, 6, 7} + (first_block + v * kLanes);
    c0[v] = block;
    c1[v] = block >> 32;
    c2[v] = Words{} + static_cast<std::uint64_t>(key.stream);
    c3[v] = Words{} + key.step;
  }
  auto k0 = static_cast<std::uint32_t>(key.seed), k1 = static_cast<std::uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const Words a = (c0[v] & kLow) * std::uint64_t{0xD2511F53u};
      const Words b = (c2[v] & kLow) * std::uint64_t{0xCD9E8D57u};
      c0[v] = (b >> 32) ^ c1[v] ^ k0;
      c1[v] = b;
      c2[v] = (a >> 32) ^ c3[v] ^ k1;
      c3[v] = a;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (std::size_t v = 0; v < kVectors; ++v) {
    const Words front = (c0[v] & kLow) | (c1[v] << 32), back = (c2[v] & kLow) | (c3[v] << 32);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t block[2] = {front[lane], back[lane]};
      std::memcpy(bits + 4 * (v * kLanes + lane), block, sizeof block);
    }
  }
}

void apply(const std::uint32_t* bits, std::uint32_t threshold, float scale, const float* from, float* to,
           std::int64_t length) {
  for (std::int64_t i = 0; i < length; ++i) {
    const float scaled = from[i] * scale;
    to[i] = bits[i] >> 8 >= threshold ? scaled : 0.0f;
  }
}

template <typename T>
void run(const Tensor& x, double p, const RandomKey& key, const Out& y) {
  const std::uint32_t threshold = kernels::detail::dropout_threshold(p);
  const auto scale = static_cast<float>(p < 1.0 ? 1.0 / (1.0 - p) : 0.0);
  const std::int64_t count = x.numel();
  const T* const from = x.data<T>();
  T* const to = y.data<T>();
  parallel_for((count + kGroup - 1) / kGroup, 64, [&](std::int64_t begin, std::int64_t end) {
    std::array<std::uint32_t, kGroup> bits;
    for (std::int64_t group = begin; group < end; ++group) {
      philox_words(key, static_cast<std::uint64_t>(group) * kBlocks, bits.data());
      const std::int64_t first = group * kGroup, length = std::min(kGroup, count - first);
      if constexpr (is_float<T>) {
        apply(bits.data(), threshold, scale, from + first, to + first, length);
      } else {
        float values[kGroup];
        widen(from + first, length, values);
        apply(bits.data(), threshold, scale, values, values, length);
        round_floats(values, length, to + first);
      }
    }
  });
}

}  // namespace

bool supports_dropout(const Tensor& x, const Tensor& y) {
  return computes_in_float(x.dtype()) && x.is_dense(Layout::channels_last) && y.is_dense(Layout::channels_last);
}

void dropout_forward(const Tensor& x, double p, const RandomKey& key, const Out& y) {
  dispatch_float(x.dtype(), "dropout", [&](auto tag) { run<typename decltype(tag)::type>(x, p, key, y); });
}

}  // namespace tandem::kernels::cpu
