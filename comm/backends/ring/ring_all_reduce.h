// One ring all-reduce under way: a state machine that any number of poll() calls carries to its end.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/schedules/ring_schedule.h"
#include "tandem/comm/transports/transport.h"
#include "tandem/core/storage.h"

#include <deque>

namespace tandem::comm {

struct RingOptions {
  /// Chunks travel in segments of at most this many bytes, so that one segment is reduced while the next is on its way.
  std::int64_t segment_bytes = 128 * 1024;
  /// Segments that may be on their way at once, in either direction.
  std::int64_t depth = 4;
};

/// In place on `buffer`. The sum of a chunk is formed in the order of the ring, once, and then copied: all ranks end
/// with the same bits. No thread of its own: it moves on in poll(), which never waits.
class RingAllReduce {
 public:
  RingAllReduce(Transport& transport, int ranks, int rank, int tag, CollectiveBuffer buffer, ReduceOp op,
                const RingOptions& options);

  /// True once every element is final and all messages of this rank have left.
  bool poll();

  std::int64_t bytes_sent() const { return bytes_sent_; }

  /// Messages that have arrived or left: how far it is.
  std::size_t messages() const { return received_ + sent_; }

 private:
  struct Segment {
    ElementRange elements;
    bool reduce = false;
    bool last_reduction = false;
  };

  std::byte* address(std::int64_t element) const;
  std::byte* receive_slot(std::size_t receive) const;
  bool may_receive() const;
  void start_receive();
  void finish_receive();
  bool may_send() const;
  void start_send();

  Transport& transport_;
  int ranks_;
  int tag_;
  CollectiveBuffer buffer_;
  ReduceOp op_;
  std::int64_t depth_;
  std::int64_t segment_elements_;
  int send_to_ = 0;
  int receive_from_ = 0;
  std::vector<Segment> receives_;    // in the order of the schedule
  std::vector<ElementRange> sends_;  // the first own_sends_ are this rank's own, then what was received
  std::size_t own_sends_ = 0;
  std::size_t reductions_ = 0;           // receives_ that reduce; they come first
  std::size_t received_ = 0, sent_ = 0;  // complete
  std::deque<std::unique_ptr<Transfer>> receiving_, sending_;
  std::unique_ptr<Storage> slots_;  // where segments to be reduced arrive
  std::int64_t bytes_sent_ = 0;
};

}  // namespace tandem::comm
