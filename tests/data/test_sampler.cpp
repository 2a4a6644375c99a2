// The distributed sampler: every image once, the same global batches for any number of ranks.
#include "tandem/core/error.h"
#include "tandem/data/sampler.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <numeric>

using namespace tandem;
using namespace tandem::data;

TEST_CASE("every image comes up exactly once, whatever the number of ranks") {
  const int world = GENERATE(1, 2, 3, 4, 5);
  const std::int64_t size = GENERATE(0, 1, 2, 7, 64, 101);
  const std::int64_t batch_size = GENERATE(1, 3, 16, 200);
  const auto order = DistributedSampler(size, 1, 0, true, 9).order(3);
  std::vector<int> seen(static_cast<std::size_t>(size), 0);
  const DistributedSampler first(size, world, 0, true, 9);
  for (std::int64_t batch = 0; batch < first.batches(batch_size); ++batch) {
    std::int64_t place = batch * batch_size, least = size, most = 0;
    for (int rank = 0; rank < world; ++rank) {
      const DistributedSampler sampler(size, world, rank, true, 9);
      REQUIRE(sampler.order(3) == order);
      const BatchPart part = sampler.part(batch, batch_size);
      REQUIRE(part.begin == place);  // ranks follow each other: together they are the global batch
      REQUIRE(part.global_count == std::min(batch_size, size - batch * batch_size));
      for (std::int64_t i = 0; i < part.count; ++i)
        ++seen[static_cast<std::size_t>(order[static_cast<std::size_t>(place + i)])];
      place += part.count;
      least = std::min(least, part.count);
      most = std::max(most, part.count);
    }
    REQUIRE(place == std::min(size, (batch + 1) * batch_size));
    REQUIRE(most - least <= 1);
  }
  REQUIRE(std::count(seen.begin(), seen.end(), 1) == size);
}

TEST_CASE("the smallest part of an epoch is the fewest images that any rank gets, but for none") {
  const int world = GENERATE(1, 2, 3, 4, 5);
  const std::int64_t size = GENERATE(0, 1, 2, 7, 19, 64, 101);
  const std::int64_t batch_size = GENERATE(1, 3, 16, 200);
  const bool drop_last = GENERATE(false, true);
  INFO(size << " images in batches of " << batch_size << " on " << world << " ranks");
  const DistributedSampler sampler(size, world, 0, true, 9);
  const std::int64_t batches = sampler.batches(batch_size, drop_last);
  CHECK(batches == (drop_last ? size / batch_size : (size + batch_size - 1) / batch_size));
  std::int64_t least = 0, of = 0;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    for (int rank = 0; rank < world; ++rank) {
      const BatchPart part = DistributedSampler(size, world, rank, true, 9).part(batch, batch_size);
      if (part.count == 0 || (least != 0 && part.count >= least)) continue;
      least = part.count;
      of = part.global_count;
    }
  }
  const BatchPart smallest = sampler.smallest_part(batch_size, drop_last);
  CHECK(smallest.count == least);
  CHECK(smallest.global_count == of);
}

TEST_CASE("micro-batches are the parts of as many ranks, and each rank's part is those that it has") {
  const int micro_batches = GENERATE(1, 4, 6, 8);
  const std::int64_t size = GENERATE(1, 7, 64, 101);
  for (const int world : {1, 2, 4}) {
    if (micro_batches % world != 0) continue;
    const std::int64_t batch_size = 16;
    for (int rank = 0; rank < world; ++rank) {
      INFO(size << " images, " << micro_batches << " micro-batches on " << world << " ranks");
      const DistributedSampler sampler(size, {world, rank, micro_batches}, true, 9);
      REQUIRE(sampler.local_micro_batches() == micro_batches / world);
      for (std::int64_t batch = 0; batch < sampler.batches(batch_size); ++batch) {
        const BatchPart part = sampler.part(batch, batch_size);
        std::int64_t next = part.begin;
        for (int i = 0; i < sampler.local_micro_batches(); ++i) {
          const BatchPart micro = sampler.micro_part(batch, batch_size, i);
          const int number = rank * sampler.local_micro_batches() + i;
          const BatchPart expected = DistributedSampler(size, micro_batches, number, true, 9).part(batch, batch_size);
          CHECK(micro.begin == expected.begin);
          CHECK(micro.count == expected.count);
          CHECK(micro.global_count == part.global_count);
          CHECK(micro.begin == next);
          next += micro.count;
        }
        CHECK(next == part.begin + part.count);
      }
      CHECK(sampler.smallest_part(batch_size).count ==
            DistributedSampler(size, micro_batches, 0, true, 9).smallest_part(batch_size).count);
    }
  }
}

TEST_CASE("the order depends on seed and epoch only") {
  const DistributedSampler sampler(1000, 1, 0, true, 5);
  CHECK(sampler.order(0) == DistributedSampler(1000, 4, 3, true, 5).order(0));
  CHECK(sampler.order(0) != sampler.order(1));
  CHECK(sampler.order(0) != DistributedSampler(1000, 1, 0, true, 6).order(0));
  std::vector<std::int64_t> plain(1000);
  std::iota(plain.begin(), plain.end(), 0);
  CHECK(sampler.order(0) != plain);
  CHECK(DistributedSampler(1000, 1, 0, false, 5).order(7) == plain);
}

TEST_CASE("all orders of four images are about equally likely") {
  std::vector<int> counts(256, 0);
  constexpr int kDraws = 24000;
  for (std::uint32_t epoch = 0; epoch < kDraws; ++epoch) {
    const auto order = DistributedSampler(4, 1, 0, true, 1).order(epoch);
    ++counts[static_cast<std::size_t>(order[0] * 64 + order[1] * 16 + order[2] * 4 + order[3])];
  }
  // 24 orders, 1000 each expected; five deviations of a binomial are 5 * sqrt(1000 * 23 / 24) < 155.
  CHECK(std::count(counts.begin(), counts.end(), 0) == 256 - 24);
  for (const int count : counts) CHECK((count == 0 || std::abs(count - 1000) < 155));
}

TEST_CASE("the sampler refuses what makes no sense") {
  CHECK_THROWS_AS(DistributedSampler(-1, 1, 0, true, 0), Error);
  CHECK_THROWS_AS(DistributedSampler(1, 0, 0, true, 0), Error);
  CHECK_THROWS_AS(DistributedSampler(1, 2, 2, true, 0), Error);
  CHECK_THROWS_AS(DistributedSampler(1, {2, 0, 3}, true, 0), Error);
  CHECK_THROWS_AS(DistributedSampler(1, {2, 0, -2}, true, 0), Error);
  CHECK_THROWS_AS(DistributedSampler(9, {2, 0, 4}, true, 0).micro_part(0, 8, 2), Error);
  const DistributedSampler sampler(10, 1, 0, true, 0);
  CHECK_THROWS_AS(sampler.batches(0), Error);
  CHECK_THROWS_AS(sampler.part(4, 3), Error);
  CHECK(sampler.part(3, 3).count == 1);
}
