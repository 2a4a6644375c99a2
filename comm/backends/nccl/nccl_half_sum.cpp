// Which elements go where, and the sums between the rounds.
#include "tandem/comm/backends/nccl/nccl_half_sum.h"

#include "tandem/kernels/reduce/add_rows.h"

namespace tandem::comm {

namespace {

constexpr std::int64_t kShardUnit = 8;  // shards begin at multiples of 16 bytes, for the kernel's wide accesses

}  // namespace

bool is_half_sum(DType dtype, ReduceOp op) {
  return (dtype == DType::f16 || dtype == DType::bf16) && (op == ReduceOp::sum || op == ReduceOp::average);
}

HalfSum::HalfSum(const CollectiveBuffer& buffer, ReduceOp op, const Place& place, Stream stream)
    : stream_(std::move(stream)),
      elements_(buffer.owner.as_strided({buffer.count}, {1}, buffer.owner.offset())),
      divisor_(op == ReduceOp::average ? place.size : 1) {
  const MemoryTagScope tag(MemoryTag::comm);
  const StreamScope scope(stream_);
  const std::int64_t ranks = place.size, shard = buffer.count / (ranks * kShardUnit) * kShardUnit;
  const std::int64_t whole = ranks * shard, rest = buffer.count - whole;
  shards_ = Tensor::empty({ranks, shard}, elements_.options());
  rests_ = Tensor::empty({ranks, rest}, elements_.options());
  my_shard_ = elements_.narrow(0, place.rank * shard, shard);
  my_rest_ = elements_.narrow(0, whole, rest);
}

void HalfSum::exchange(NcclCommunicator& communicator) const {
  std::vector<NcclSwap> swaps;
  const auto add = [&](int rank, const Tensor& from, const Out& into) {
    if (from.numel() > 0)
      swaps.push_back({rank, from.raw_data(), into.raw_data(), from.numel() * size_of(from.dtype())});
  };
  const std::int64_t shard = shards_.size(1);
  for (int rank = 0; rank < shards_.size(0); ++rank) {
    add(rank, elements_.narrow(0, rank * shard, shard), Out(shards_.select(0, rank)));
    add(rank, my_rest_, Out(rests_.select(0, rank)));
  }
  if (!swaps.empty()) communicator.swap(swaps, stream_);
}

void HalfSum::add_and_gather(NcclCommunicator& communicator) const {
  const StreamScope scope(stream_);
  kernels::add_rows(shards_, divisor_, Out(my_shard_));
  kernels::add_rows(rests_, divisor_, Out(my_rest_));
  const std::int64_t bytes = my_shard_.numel() * size_of(my_shard_.dtype());
  if (bytes > 0) communicator.all_gather(my_shard_.raw_data(), bytes, Out(elements_).raw_data(), stream_);
}

}  // namespace tandem::comm
