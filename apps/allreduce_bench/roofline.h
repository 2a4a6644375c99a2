// What the machine allows: an all-reduce through shared memory in which no rank waits for another.
#pragma once

#include "apps/allreduce_bench/collectives.h"
#include "tandem/comm/collective.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace tandem::comm {
class SharedMemory;
}

namespace tandem::allreduce_bench {

/// Throws Error unless all ranks are on one host.
void check_one_host(int ranks, int local_ranks);

/// Tensors of all ranks in memory that all ranks see. Each rank reads its n-th part of everybody's input, combines it,
/// and writes it to all of them (in place), or to everybody's output: the loops of backend native for shared tensors
/// (comm/backends/native/window_engine.h), without a word between the ranks.
class Roofline {
 public:
  /// Tensors of so many zeros. Collective; throws AgreedError where the memory cannot be had.
  Roofline(comm::ProcessGroup& group, std::int64_t count, DType dtype);

  /// This rank's.
  const Buffers& buffers() const { return buffers_; }
  /// This rank's part of the work. All is there when all ranks have done theirs.
  void run(bool in_place, comm::ReduceOp op) const;

 private:
  std::byte* tensor_of(int rank, bool is_output) const;

  std::shared_ptr<comm::SharedMemory> memory_;
  DType dtype_;
  int ranks_;
  std::int64_t tensor_bytes_, begin_, count_;
  Buffers buffers_;
};

}  // namespace tandem::allreduce_bench
