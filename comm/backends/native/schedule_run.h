// One rank's part of a schedule under way: a state machine that any number of poll() calls carries to its end.
#pragma once

#include "tandem/comm/backends/native/operation_trace.h"
#include "tandem/comm/collective.h"
#include "tandem/comm/schedules/schedule.h"
#include "tandem/comm/schedules/segment_options.h"
#include "tandem/comm/schedules/turns.h"
#include "tandem/comm/transports/transport.h"
#include "tandem/core/storage.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tandem::comm {

/// Where this rank has the elements of a chunk; null where the schedule gives it nothing to do with that chunk. Counts
/// are the same on all ranks.
struct ChunkMemory {
  std::byte* data = nullptr;
  std::int64_t count = 0;
};

/// What the elements are, and how they are combined.
struct Elements {
  DType dtype = DType::u8;
  ReduceOp op = ReduceOp::sum;
};

/// Works in place on the chunks. Each segment of a chunk goes its own way through the schedule: its steps follow each
/// other, and those of segments at other places of their chunks do not wait for them. Of segments at one place,
/// messages of a round are sent when those of the rounds before have left, and asked for when those have come: a rank
/// that is ahead would else take the bandwidth of what others wait for. Rounds of up to 8 KiB do not wait for that, nor
/// others for them. No thread of its own: it moves on in poll(), which never waits. Sums are formed in the order of the
/// schedule and, where several ranks form one, in the same order.
class ScheduleRun {
 public:
  /// All messages have this tag. `transport` must outlive it.
  ScheduleRun(Transport& transport, std::shared_ptr<const Schedule> schedule, int rank, int tag,
              const std::vector<ChunkMemory>& chunks, const Elements& elements, const SegmentOptions& options);

  /// Records its steps, up to the end, under this number. Null: does not.
  void trace(std::unique_ptr<OperationTrace> trace, std::int64_t number) {
    trace_ = std::move(trace);
    number_ = number;
  }

  /// True once every element is final and all messages of this rank have left.
  bool poll();

  std::int64_t bytes_sent() const { return bytes_sent_; }

  /// Messages that have arrived or left: how far it is.
  std::size_t messages() const { return messages_; }

  /// What it waits for: "step 2 of ring, for rank 3"; "" where it is complete.
  std::string waits_for() const;

 private:
  /// A part of a chunk, its place among the chunk's parts, and how many steps and writes (receives and reductions) are
  /// done with it.
  struct Segment {
    std::byte* data = nullptr;
    std::int64_t count = 0;
    std::size_t wave = 0;
    int steps = 0, writes = 0;
  };
  /// A step of a segment, and how many of that segment's steps and writes come before it.
  struct Task {
    std::size_t segment = 0;
    Step step;
    int steps_before = 0, writes_before = 0;
  };
  /// What goes to and comes from one rank, in the order of the schedule.
  struct Channel {
    int peer = 0;
    std::vector<Task> sends, receives;
    std::size_t sent = 0, received = 0;  // complete
    std::deque<std::unique_ptr<Transfer>> sending, receiving;
    std::size_t reductions = 0;       // among receives
    std::size_t next_slot = 0;        // reductions whose receive has begun
    std::unique_ptr<Storage> slots;   // where segments that are to be combined arrive
    std::deque<std::byte*> occupied;  // slots of `receiving`; null for what is received in its place
    std::vector<std::int64_t> send_begins, receive_begins;  // by task, where they are recorded
    std::int64_t received_ns = 0;                           // the end of the last that was recorded
  };

  std::vector<std::vector<std::size_t>> cut(const std::vector<ChunkMemory>& chunks);
  void add_tasks(const std::vector<std::vector<std::size_t>>& segments_of_chunk);
  Channel& channel_of(int peer);
  std::int64_t bytes_of(const Segment& segment) const { return segment.count * size_of(elements_.dtype); }
  /// Empty where all are to one rank, or from one.
  Turns make_turns(std::vector<Task> Channel::* tasks) const;
  bool is_in_turn(const Turns& turns, const Task& task) const;
  void end_turn(Turns& turns, const Task& task) const;
  bool advance(Channel& channel);
  bool try_receive(Channel& channel);
  bool try_finish_receive(Channel& channel);
  bool try_send(Channel& channel);
  bool try_finish_send(Channel& channel);
  void combine(const Task& task, const std::byte* received);
  void record(int peer, const Task& task, std::int64_t begin_ns, std::int64_t looked_ns, std::int64_t came_ns);
  /// Returns what the clock tells since then; 0 where steps are not recorded.
  std::int64_t look_at_clock() {
    if (trace_ == nullptr) [[likely]]
      return 0;
    trace_->look_at_clock();
    return trace_->now_ns();
  }

  Transport& transport_;
  std::shared_ptr<const Schedule> schedule_;
  int rank_;
  int tag_;
  Elements elements_;
  std::int64_t segment_elements_;
  std::size_t depth_ = 1;  // messages that may be on their way to a rank, or from it
  std::vector<Segment> segments_;
  std::vector<Channel> channels_;
  Turns sends_, receives_;
  std::size_t open_channels_ = 0;
  std::size_t messages_ = 0;
  std::int64_t bytes_sent_ = 0;
  std::unique_ptr<OperationTrace> trace_;
  std::int64_t number_ = 0;
};

}  // namespace tandem::comm
