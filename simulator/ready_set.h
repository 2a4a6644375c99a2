// Which of up to 1024 threads can run: one bit each, by their turn.
#pragma once

#include "tandem/simulator/fiber.h"

#include <array>
#include <bit>
#include <cstdint>

namespace tandem::simulator {

class ReadySet {
 public:
  void clear() { words_ = {}; }
  /// Members 0 to count - 1, and no others.
  void fill(unsigned count) {
    words_ = {};
    for (unsigned word = 0; word < count / 64; ++word) words_[word] = ~std::uint64_t{0};
    if (count % 64 != 0) words_[count / 64] = (std::uint64_t{1} << count % 64) - 1;
  }
  void insert(unsigned position) { words_[position / 64] |= std::uint64_t{1} << position % 64; }
  void erase(unsigned position) { words_[position / 64] &= ~(std::uint64_t{1} << position % 64); }
  bool contains(unsigned position) const { return (words_[position / 64] >> position % 64 & 1u) != 0; }

  /// The first member at or after `position`, wrapping round; -1 where there is none.
  int next(unsigned position) const {
    const std::uint64_t rest = words_[position / 64] >> position % 64;
    if (rest != 0) return static_cast<int>(position) + std::countr_zero(rest);
    for (unsigned i = 1; i <= kWords; ++i) {
      const unsigned word = (position / 64 + i) % kWords;
      if (words_[word] != 0) return static_cast<int>(word * 64) + std::countr_zero(words_[word]);
    }
    return -1;
  }

 private:
  static constexpr unsigned kWords = kMaxBlockThreads / 64;
  std::array<std::uint64_t, kWords> words_{};
};

}  // namespace tandem::simulator
