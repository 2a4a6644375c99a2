// Orders and parts.
#include "tandem/data/sampler.h"

#include "tandem/core/error.h"
#include "tandem/core/random.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace tandem::data {

DistributedSampler::DistributedSampler(std::int64_t size, int world_size, int rank, bool shuffle, std::uint64_t seed)
    : size_(size), world_size_(world_size), rank_(rank), shuffle_(shuffle), seed_(seed) {
  require(size >= 0 && size <= std::numeric_limits<std::uint32_t>::max(),
          "sampler: cannot order {} examples, only 0 to {}", size, std::numeric_limits<std::uint32_t>::max());
  require(world_size >= 1 && rank >= 0 && rank < world_size,
          "sampler: rank {} of {} does not exist; ranks are numbered from 0", rank, world_size);
}

std::vector<std::int64_t> DistributedSampler::order(std::uint32_t epoch) const {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size_));
  std::iota(order.begin(), order.end(), 0);
  if (!shuffle_) return order;
  const RandomKey key{seed_, RandomStream::shuffle, epoch};
  // Fisher-Yates, from the back.
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[key.below(i, static_cast<std::uint32_t>(i))]);
  return order;
}

std::int64_t DistributedSampler::batches(std::int64_t global_batch_size, bool drop_last) const {
  require(global_batch_size >= 1, "sampler: a batch needs 1 example or more, got batch size {}", global_batch_size);
  return size_ / global_batch_size + (!drop_last && size_ % global_batch_size != 0 ? 1 : 0);
}

BatchPart DistributedSampler::part(std::int64_t batch, std::int64_t global_batch_size) const {
  const std::int64_t all = batches(global_batch_size);
  require(batch >= 0 && batch < all, "sampler: batch {} asked for, an epoch has {}; they are numbered from 0", batch,
          all);
  const std::int64_t first = batch * global_batch_size;
  const std::int64_t global_count = std::min(global_batch_size, size_ - first);
  const std::int64_t share = global_count / world_size_, left_over = global_count % world_size_;
  const std::int64_t begin = first + rank_ * share + std::min<std::int64_t>(rank_, left_over);
  return {begin, share + (rank_ < left_over ? 1 : 0), global_count};
}

BatchPart DistributedSampler::smallest_part(std::int64_t global_batch_size, bool drop_last) const {
  const std::int64_t all = batches(global_batch_size, drop_last);
  BatchPart smallest;
  // Only the last batch may be smaller than the others, and parts grow smaller by rank.
  for (const std::int64_t batch : {std::int64_t{0}, all - 1}) {
    for (int rank = 0; batch >= 0 && batch < all && rank < world_size_; ++rank) {
      const BatchPart part =
          DistributedSampler(size_, world_size_, rank, shuffle_, seed_).part(batch, global_batch_size);
      if (part.count > 0 && (smallest.count == 0 || part.count < smallest.count)) smallest = part;
    }
  }
  return smallest;
}

}  // namespace tandem::data
