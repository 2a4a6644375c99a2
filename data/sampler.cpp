// Orders and parts.
#include "tandem/data/sampler.h"

#include "tandem/core/error.h"
#include "tandem/core/random.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace tandem::data {

DistributedSampler::DistributedSampler(std::int64_t size, const RankShare& share, bool shuffle, std::uint64_t seed)
    : size_(size), share_(share), shuffle_(shuffle), seed_(seed) {
  require(size >= 0 && size <= std::numeric_limits<std::uint32_t>::max(),
          "sampler: cannot order {} examples, only 0 to {}", size, std::numeric_limits<std::uint32_t>::max());
  require(share.world_size >= 1 && share.rank >= 0 && share.rank < share.world_size,
          "sampler: rank {} of {} does not exist; ranks are numbered from 0", share.rank, share.world_size);
  require(share.micro_batches >= 0 && share.micro_batches % share.world_size == 0,
          "sampler: {} micro-batches cannot be shared by {} ranks; take a multiple of {}, or 0 for one for each rank",
          share.micro_batches, share.world_size, share.world_size);
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

BatchPart DistributedSampler::pieces_of(std::int64_t batch, std::int64_t global_batch_size, int first,
                                        int count) const {
  const std::int64_t all = batches(global_batch_size);
  require(batch >= 0 && batch < all, "sampler: batch {} asked for, an epoch has {}; they are numbered from 0", batch,
          all);
  const std::int64_t begin = batch * global_batch_size, global_count = std::min(global_batch_size, size_ - begin);
  const std::int64_t share = global_count / pieces(), left_over = global_count % pieces();
  const auto begin_of = [&](std::int64_t piece) { return begin + piece * share + std::min(piece, left_over); };
  return {begin_of(first), begin_of(first + count) - begin_of(first), global_count};
}

BatchPart DistributedSampler::part(std::int64_t batch, std::int64_t global_batch_size) const {
  return pieces_of(batch, global_batch_size, share_.rank * local_micro_batches(), local_micro_batches());
}

BatchPart DistributedSampler::micro_part(std::int64_t batch, std::int64_t global_batch_size, int local) const {
  require(local >= 0 && local < local_micro_batches(),
          "sampler: micro-batch {} of a rank asked for, it has {}; they are numbered from 0", local,
          local_micro_batches());
  return pieces_of(batch, global_batch_size, share_.rank * local_micro_batches() + local, 1);
}

BatchPart DistributedSampler::smallest_part(std::int64_t global_batch_size, bool drop_last) const {
  const std::int64_t all = batches(global_batch_size, drop_last);
  BatchPart smallest;
  // Only the last batch may be smaller than the others, and pieces grow smaller by number.
  for (const std::int64_t batch : {std::int64_t{0}, all - 1}) {
    for (int piece = 0; batch >= 0 && batch < all && piece < pieces(); ++piece) {
      const BatchPart part = pieces_of(batch, global_batch_size, piece, 1);
      if (part.count > 0 && (smallest.count == 0 || part.count < smallest.count)) smallest = part;
    }
  }
  return smallest;
}

}  // namespace tandem::data
