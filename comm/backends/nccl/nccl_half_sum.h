// The sum of halves over NCCL, whose own adds halves in their dtype: here each is added in f32 and rounded once.
#pragma once

#include "tandem/comm/backends/nccl/nccl_communicator.h"

#include <vector>

namespace tandem::comm {

/// True for reductions that HalfSum is for: sums and averages of f16 and bf16.
bool is_half_sum(DType dtype, ReduceOp op);

/// An all-reduce in two rounds. Each rank owns one of n equal shards of the elements. It gets that shard from all
/// ranks, adds the n of them in f32 in the order of the ranks, divides, rounds, and the finished shards are gathered.
/// What n shards leave over at the end, less than 8n elements, goes to all ranks and is added by each. Halves travel:
/// but for that rest, 2(n-1)/n of the data leave a rank, as in a ring. All ranks get the same bits.
class HalfSum {
 public:
  /// All work goes to `stream`, as does the memory for what comes in, about as much as the elements take.
  /// In place on a dense tensor.
  HalfSum(const Tensor& tensor, ReduceOp op, const Place& place, Stream stream);

  /// The first round: shards change places.
  void exchange(NcclCommunicator& communicator) const;
  /// The second, once the communicator is ready again: this rank's sums, and everybody's finished shards.
  void add_and_gather(NcclCommunicator& communicator) const;

 private:
  Stream stream_;
  Tensor elements_;            // [count]
  Tensor shards_, rests_;      // of all ranks: [n, elements of a shard] and [n, elements left over]
  Tensor my_shard_, my_rest_;  // where they go: parts of elements_
  double divisor_;
};

}  // namespace tandem::comm
