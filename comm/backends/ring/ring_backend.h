// The `ring` backend: our own all-reduce over a transport; other collectives are lent by another backend.
#pragma once

#include "tandem/comm/backends/ring/ring_all_reduce.h"

#include <functional>

namespace tandem::comm {

/// The all-reduces under way between the ranks of one transport. Whichever of them is polled or waited for, all move
/// on: ranks may wait for them in different orders.
class RingEngine {
 public:
  RingEngine(std::unique_ptr<Transport> transport, int ranks, int rank, RingOptions options = {})
      : transport_(std::move(transport)), ranks_(ranks), rank_(rank), options_(options) {}

  /// The n-th start on one rank meets the n-th on every other.
  std::shared_ptr<RingAllReduce> start(CollectiveBuffer buffer, ReduceOp op);
  /// Moves everything on as far as it goes without waiting; true if anything moved.
  bool poll();
  /// Polls until `operation` is complete, giving the core away while no message arrives.
  void wait_for(const RingAllReduce& operation);
  bool is_complete(const RingAllReduce& operation) const;
  void cancel(const RingAllReduce& operation);
  std::int64_t bytes_sent() const { return bytes_sent_; }

 private:
  std::unique_ptr<Transport> transport_;
  int ranks_;
  int rank_;
  RingOptions options_;
  int next_tag_ = 0;
  std::vector<std::shared_ptr<RingAllReduce>> active_;
  std::int64_t bytes_sent_ = 0;
};

/// `others` has rank and size and does everything but all-reduce.
std::unique_ptr<Backend> make_ring_backend(std::unique_ptr<Backend> others, std::unique_ptr<Transport> transport,
                                           RingOptions options = {});

}  // namespace tandem::comm
