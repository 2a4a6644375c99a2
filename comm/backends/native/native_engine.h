// The collectives under way between the ranks of one transport.
#pragma once

#include "tandem/comm/backends/native/collective_plan.h"
#include "tandem/comm/schedules/schedule.h"
#include "tandem/comm/schedules/segment_options.h"
#include "tandem/comm/transports/transport.h"

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tandem::comm {

/// A collective under way, and what must live as long.
struct NativeOperation {
  Collective collective;
  CollectivePlan plan;
  ScheduleRun run;
  std::exception_ptr fault = {};  ///< why it has failed
};

/// Whichever of its operations is polled or waited for, all move on: ranks may wait for them in different orders.
class NativeEngine {
 public:
  NativeEngine(std::unique_ptr<Transport> transport, int ranks, int rank, Schedule all_reduce,
               SegmentOptions options = {});
  /// Of all-reduces that are started from now on: on all ranks alike.
  void set_all_reduce(std::vector<SizedSchedule> all_reduce) { schedules_.set_all_reduce(std::move(all_reduce)); }

  /// The n-th collective that is started on one rank meets the n-th on every other.
  std::shared_ptr<NativeOperation> start(const Collective& collective);
  /// Moves everything on as far as it goes without waiting; true if anything moved. An operation that fails keeps its
  /// fault, and others go on.
  bool poll();
  /// Throws what it failed by.
  bool is_complete(const NativeOperation& operation) const;
  void cancel(const NativeOperation& operation);
  /// What the first of them waits for, as ScheduleRun::waits_for(); "" where none is under way.
  std::string waits_for() const { return active_.empty() ? "" : active_.front()->run.waits_for(); }
  Transport& transport() { return *transport_; }
  const SegmentOptions& segments() const { return options_; }
  /// For messages of another kind between these ranks: as if it were a collective.
  int take_tag() { return std::exchange(next_tag_, (next_tag_ + 1) % kCollectiveTags); }
  /// In all-reduces that are complete.
  std::int64_t all_reduce_bytes_sent() const { return all_reduce_bytes_sent_; }

 private:
  static constexpr int kMostTags = 32768;                                   // MPI promises tags up to 32767
  static constexpr int kCollectiveTags = kMostTags - (kMaxCarriedTag + 1);  // then those of messages
  int tag_of(const Collective& collective);
  bool move_on(NativeOperation& operation);
  bool has_turn(const NativeOperation& operation, std::size_t earlier) const;

  std::unique_ptr<Transport> transport_;
  int rank_;
  SegmentOptions options_;
  Schedules schedules_;
  int next_tag_ = 0;
  std::vector<std::shared_ptr<NativeOperation>> active_;
  std::int64_t all_reduce_bytes_sent_ = 0;
};

}  // namespace tandem::comm
