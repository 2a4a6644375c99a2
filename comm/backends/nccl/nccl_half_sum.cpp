// Which elements go where, and the sums between the rounds.
#include "tandem/comm/backends/nccl/nccl_half_sum.h"

#include "tandem/kernels/reduce/add_rows.h"

namespace tandem::comm {

namespace {

constexpr std::int64_t kPieceUnit = 8;  // pieces begin at multiples of 16 bytes, for the kernel's wide accesses

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
  const std::int64_t ranks = place.size, piece = buffer.count / (ranks * kPieceUnit) * kPieceUnit;
  const std::int64_t whole = ranks * piece, rest = buffer.count - whole;
  pieces_ = Tensor::empty({ranks, piece}, elements_.options());
  rests_ = Tensor::empty({ranks, rest}, elements_.options());
  my_piece_ = elements_.narrow(0, place.rank * piece, piece);
  my_rest_ = elements_.narrow(0, whole, rest);
}

void HalfSum::exchange(NcclCommunicator& communicator) const {
  std::vector<NcclSwap> swaps;
  const auto add = [&](int rank, const Tensor& from, const Out& into) {
    if (from.numel() > 0)
      swaps.push_back({rank, from.raw_data(), into.raw_data(), from.numel() * size_of(from.dtype())});
  };
  const std::int64_t piece = pieces_.size(1);
  for (int rank = 0; rank < pieces_.size(0); ++rank) {
    add(rank, elements_.narrow(0, rank * piece, piece), Out(pieces_.select(0, rank)));
    add(rank, my_rest_, Out(rests_.select(0, rank)));
  }
  if (!swaps.empty()) communicator.swap(swaps, stream_);
}

void HalfSum::add_and_gather(NcclCommunicator& communicator) const {
  const StreamScope scope(stream_);
  kernels::add_rows(pieces_, divisor_, Out(my_piece_));
  kernels::add_rows(rests_, divisor_, Out(my_rest_));
  const std::int64_t bytes = my_piece_.numel() * size_of(my_piece_.dtype());
  if (bytes > 0) communicator.all_gather(my_piece_.raw_data(), bytes, Out(elements_).raw_data(), stream_);
}

}  // namespace tandem::comm
