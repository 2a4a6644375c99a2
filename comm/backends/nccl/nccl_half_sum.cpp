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

HalfSum::HalfSum(const Tensor& tensor, ReduceOp op, const Place& place, Stream stream)
    : stream_(std::move(stream)),
      elements_(tensor.as_strided({tensor.numel()}, {1}, tensor.offset())),
      divisor_(op == ReduceOp::average ? place.size : 1) {
  const MemoryTagScope tag(MemoryTag::comm);
  const StreamScope scope(stream_);
  const std::int64_t count = tensor.numel(), ranks = place.size, shard = count / (ranks * kShardUnit) * kShardUnit;
  const std::int64_t whole = ranks * shard, rest = count - whole;
  shards_ = Tensor::empty({ranks, shard}, elements_.options());
  rests_ = Tensor::empty({ranks, rest}, elements_.options());
  my_shard_ = elements_.narrow(0, place.rank * shard, shard);
  my_rest_ = elements_.narrow(0, whole, rest);
}

void HalfSum::exchange(NcclCommunicator& communicator) const {
  std::vector<NcclExchange> exchanges;
  const auto add = [&](int rank, const Tensor& from, const Out& into) {
    const std::int64_t bytes = from.numel() * size_of(from.dtype());
    if (bytes > 0) exchanges.push_back({rank, from.raw_data(), bytes, into.raw_data(), bytes});
  };
  const std::int64_t shard = shards_.size(1);
  for (int rank = 0; rank < shards_.size(0); ++rank) {
    add(rank, elements_.narrow(0, rank * shard, shard), Out(shards_.select(0, rank)));
    add(rank, my_rest_, Out(rests_.select(0, rank)));
  }
  if (!exchanges.empty()) communicator.exchange(exchanges, stream_);
}

void HalfSum::add_and_gather(NcclCommunicator& communicator) const {
  const StreamScope scope(stream_);
  kernels::add_rows(shards_, divisor_, Out(my_shard_));
  kernels::add_rows(rests_, divisor_, Out(my_rest_));
  const std::int64_t bytes = my_shard_.numel() * size_of(my_shard_.dtype());
  if (bytes > 0) communicator.all_gather(my_shard_.raw_data(), bytes, Out(elements_).raw_data(), stream_);
}

}  // namespace tandem::comm
