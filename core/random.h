// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
// 1, 2, 3", SC'11). A number is a pure function of (seed, stream, step, index), so results never depend on how many
// threads draw them, nor in which order.
#pragma once

#include <array>
#include <cstdint>

namespace tandem {

/// One Philox4x32-10 block: four 32-bit words from a 128-bit counter and a 64-bit key.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// What a sequence of random numbers is for: consumers with different streams draw independent numbers.
enum class RandomStream : std::uint32_t {
  initialization = 1,
  shuffle = 2,
  augmentation = 3,
  dropout = 4,
  synthetic = 5,
  test = 6,
  split = 7,
  mixing = 8,
  network = 9
};

/// Names a sequence: `step` is whatever tells one use from the next (training step, epoch, layer counter).
/// Example:
///     const RandomKey key{.seed = 1, .stream = RandomStream::augmentation, .step = 7};
///     const bool mirrored = key.uniform(0) < 0.5f;
///     const std::uint32_t column = key.below(1, 9);  // one of 0 to 8
struct RandomKey {
  std::uint64_t seed = 0;                    ///< the user's
  RandomStream stream = RandomStream::test;  ///< what the numbers are for: streams of one seed have nothing in common
  std::uint32_t step = 0;                    ///< which use of the stream

  /// Four words for the `block`-th group of four indices.
  constexpr std::array<std::uint32_t, 4> block(std::uint64_t block) const {
    return philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                       static_cast<std::uint32_t>(stream), step},
                      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  }

  /// The `index`-th 32-bit word of the sequence.
  constexpr std::uint32_t bits(std::uint64_t index) const { return block(index / 4)[index % 4]; }

  /// The `index`-th number, uniform in [0, 1) with 24 bits.
  constexpr float uniform(std::uint64_t index) const { return to_uniform(bits(index)); }

  /// The `index`-th integer, uniform in [0, bound) up to a bias below bound / 2^32.
  constexpr std::uint32_t below(std::uint64_t index, std::uint32_t bound) const {
    return static_cast<std::uint32_t>((std::uint64_t{bits(index)} * bound) >> 32);
  }

  /// The `index`-th normal number, mean 0 and variance 1: Box-Muller on bits(2 * index) and bits(2 * index + 1). So do
  /// not draw both kinds of numbers from the same places of one sequence.
  float normal(std::uint64_t index) const;

  /// A word as a number in [0, 1): its upper 24 bits.
  static constexpr float to_uniform(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
};

}  // namespace tandem
