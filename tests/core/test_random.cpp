// Philox: known answers, moments, independence of streams.
#include "tandem/core/random.h"

#include "tests/support/catch.h"

#include <cmath>
#include <set>

using namespace tandem;

TEST_CASE("Philox4x32-10 gives Random123's known answers") {
  using Words = std::array<std::uint32_t, 4>;
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t kOnes = 0xffffffff;
  CHECK(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("each part of a key changes the numbers") {
  const RandomKey key{.seed = 1, .stream = RandomStream::dropout, .step = 3};
  std::set<std::uint32_t> words{key.bits(0)};
  words.insert(RandomKey{.seed = 2, .stream = RandomStream::dropout, .step = 3}.bits(0));
  words.insert(RandomKey{.seed = 1 + (std::uint64_t{1} << 32), .stream = RandomStream::dropout, .step = 3}.bits(0));
  words.insert(RandomKey{.seed = 1, .stream = RandomStream::shuffle, .step = 3}.bits(0));
  words.insert(RandomKey{.seed = 1, .stream = RandomStream::dropout, .step = 4}.bits(0));
  words.insert(key.bits(1));
  words.insert(key.bits(4));
  words.insert(key.bits(std::uint64_t{4} << 32));
  CHECK(words.size() == 8);
  CHECK(key.bits(5) == key.block(1)[1]);
}

// Bounds: 5 standard deviations of the sample moments.
TEST_CASE("uniform and normal numbers have their moments") {
  const RandomKey key{.seed = 42};
  constexpr int kCount = 100000;
  double sum = 0.0, lowest = 1.0, highest = 0.0, normal_sum = 0.0, normal_squares = 0.0, neighbours = 0.0,
         previous = 0.0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double uniform = key.uniform(i), normal = key.normal(i);
    sum += uniform;
    lowest = std::min(lowest, uniform);
    highest = std::max(highest, uniform);
    normal_sum += normal;
    normal_squares += normal * normal;
    neighbours += normal * previous;
    previous = normal;
  }
  CHECK(std::abs(sum / kCount - 0.5) < 5.0 * std::sqrt(1.0 / 12.0 / kCount));
  CHECK(lowest >= 0.0);
  CHECK(highest < 1.0);
  CHECK(std::abs(normal_sum / kCount) < 5.0 / std::sqrt(kCount));
  CHECK(std::abs(normal_squares / kCount - 1.0) < 5.0 * std::sqrt(2.0 / kCount));
  CHECK(std::abs(neighbours / kCount) < 5.0 / std::sqrt(kCount));
}

TEST_CASE("below stays below its bound and reaches every value") {
  const RandomKey key{.seed = 5};
  std::array<int, 7> counts{};
  for (std::uint64_t i = 0; i < 7000; ++i) ++counts.at(key.below(i, 7));
  for (const int count : counts) CHECK(std::abs(count - 1000) < 150);  // 5 standard deviations of a binomial: 146
}

TEST_CASE("the largest word is still below one") { CHECK(RandomKey::to_uniform(0xffffffffu) < 1.0f); }
