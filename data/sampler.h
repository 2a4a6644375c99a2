// Which examples make up which batch, on which rank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem::data {

/// Which of the ranks that share a data set this one is; by default the only one.
struct RankShare {
  int world_size = 1;
  int rank = 0;

  friend bool operator==(const RankShare&, const RankShare&) = default;
};

/// One rank's part of one global batch: places [begin, begin + count) of the epoch's order.
struct BatchPart {
  std::int64_t begin = 0;
  std::int64_t count = 0;         ///< may differ between ranks by one in the last batch of an epoch, and may be 0
  std::int64_t global_count = 0;  ///< of all ranks together
};

/// Splits a data set among ranks. The order of an epoch depends on (seed, epoch) only. It is cut into global batches,
/// and each of these into one part per rank: N ranks with global batch B see exactly the global batches that 1 rank
/// sees. The last batch of an epoch may be smaller and is split as evenly as it goes, so that every example comes up
/// exactly once. To average gradients over a global batch, weight rank r's mean by count / global_count.
/// Example:
///     const DistributedSampler sampler(1000, 4, 0, true, 1);       // rank 0 of 4, shuffled
///     const std::int64_t batches = sampler.batches(128);           // 8
///     const std::int64_t mine = sampler.part(7, 128).count;        // 26: of the last 104
///     const std::vector<std::int64_t> numbers = sampler.order(3);  // of the examples, in the order of epoch 3
class DistributedSampler {
 public:
  /// Throws Error unless size >= 0, world_size >= 1 and 0 <= rank < world_size.
  DistributedSampler(std::int64_t size, int world_size, int rank, bool shuffle, std::uint64_t seed);

  std::int64_t size() const { return size_; }
  int world_size() const { return world_size_; }
  int rank() const { return rank_; }
  bool shuffles() const { return shuffle_; }
  std::uint64_t seed() const { return seed_; }

  /// All numbers of examples in the order of `epoch`, the same on every rank.
  std::vector<std::int64_t> order(std::uint32_t epoch) const;

  /// Global batches in an epoch; with `drop_last` only those that are full.
  std::int64_t batches(std::int64_t global_batch_size, bool drop_last = false) const;

  /// This rank's part of global batch number `batch`. Throws Error unless 0 <= batch < batches(global_batch_size).
  BatchPart part(std::int64_t batch, std::int64_t global_batch_size) const;

  /// The smallest part of an epoch that is not empty, of whichever rank.
  BatchPart smallest_part(std::int64_t global_batch_size, bool drop_last = false) const;

 private:
  std::int64_t size_;
  int world_size_, rank_;
  bool shuffle_;
  std::uint64_t seed_;
};

}  // namespace tandem::data
