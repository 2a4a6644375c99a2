// Which examples make up which batch, on which rank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem::data {

/// Which of the ranks that share a data set this one is; by default the only one.
struct RankShare {
  int world_size = 1;  ///< how many ranks share the data set
  int rank = 0;        ///< from 0
  /// Into how many parts each global batch is cut, a multiple of world_size, of which each rank has as many: parts are
  /// then the same for every number of ranks, and a Trainer trains in canonical mode. 0: one for each rank. A Loader
  /// takes no collate function and no stream with it.
  int micro_batches = 0;

  friend bool operator==(const RankShare&, const RankShare&) = default;
};

/// One rank's part of one global batch: places [begin, begin + count) of the epoch's order.
struct BatchPart {
  std::int64_t begin = 0;         ///< the first place
  std::int64_t count = 0;         ///< differs between ranks by one at most (by one for each micro-batch); may be 0
  std::int64_t global_count = 0;  ///< of all ranks together
};

/// Splits a data set among ranks. The order of an epoch depends on (seed, epoch) only. It is cut into global batches,
/// and each of these into one part per rank: N ranks with global batch B see exactly the global batches that 1 rank
/// sees. The last batch of an epoch may be smaller and is split as evenly as it goes, so that every example comes up
/// exactly once. To average gradients over a global batch, weight rank r's mean by count / global_count. With
/// micro-batches (RankShare::micro_batches) a batch is cut into these first, as it is for so many ranks, and each rank
/// has some that follow each other.
/// Example:
///     const DistributedSampler sampler(1000, 4, 0, true, 1);       // rank 0 of 4, shuffled
///     const std::int64_t batches = sampler.batches(128);           // 8
///     const std::int64_t mine = sampler.part(7, 128).count;        // 26: of the last 104
///     const std::vector<std::int64_t> numbers = sampler.order(3);  // of the examples, in the order of epoch 3
class DistributedSampler {
 public:
  /// Throws Error unless size is from 0 to 2^32 - 1, world_size >= 1, 0 <= rank < world_size, and micro_batches is 0 or
  /// a multiple of world_size.
  DistributedSampler(std::int64_t size, const RankShare& share, bool shuffle, std::uint64_t seed);
  DistributedSampler(std::int64_t size, int world_size, int rank, bool shuffle, std::uint64_t seed)
      : DistributedSampler(size, RankShare{world_size, rank}, shuffle, seed) {}

  /// Of the data set, and of the share.
  /// @{
  std::int64_t size() const { return size_; }
  int world_size() const { return share_.world_size; }
  int rank() const { return share_.rank; }
  /// @}
  /// Of all ranks together; 0: batches are cut by ranks.
  int micro_batches() const { return share_.micro_batches; }
  /// Of this rank, which are the next ones after those of the ranks before it: 1 where batches are cut by ranks.
  int local_micro_batches() const { return pieces() / share_.world_size; }
  /// Whether each epoch has an order of its own, and the seed of these orders.
  /// @{
  bool shuffles() const { return shuffle_; }
  std::uint64_t seed() const { return seed_; }
  /// @}

  /// All numbers of examples in the order of `epoch`, the same on every rank.
  std::vector<std::int64_t> order(std::uint32_t epoch) const;

  /// Global batches in an epoch; with `drop_last` only those that are full.
  std::int64_t batches(std::int64_t global_batch_size, bool drop_last = false) const;

  /// This rank's part of global batch number `batch`. Throws Error unless 0 <= batch < batches(global_batch_size).
  BatchPart part(std::int64_t batch, std::int64_t global_batch_size) const;

  /// Of this rank's part the micro-batch number `local`. Throws Error as part(), and unless
  /// 0 <= local < local_micro_batches().
  BatchPart micro_part(std::int64_t batch, std::int64_t global_batch_size, int local) const;

  /// The smallest part or micro-batch of an epoch that is not empty, of whichever rank; of 0 examples where there is
  /// none.
  BatchPart smallest_part(std::int64_t global_batch_size, bool drop_last = false) const;

 private:
  /// What a batch is cut into.
  int pieces() const { return share_.micro_batches > 0 ? share_.micro_batches : share_.world_size; }
  /// `count` of the pieces of a batch, from number `first` on.
  BatchPart pieces_of(std::int64_t batch, std::int64_t global_batch_size, int first, int count) const;

  std::int64_t size_;
  RankShare share_;
  bool shuffle_;
  std::uint64_t seed_;
};

}  // namespace tandem::data
