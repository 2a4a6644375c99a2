// Work: an operation between ranks that is under way, and how a rank waits.
#pragma once

#include "tandem/core/stream.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

namespace tandem::comm {

/// An operation under way. Dropping it before it is complete gives the operation up on this rank: that is for errors
/// only, as the other ranks may wait for it. (`native` in shared memory goes on with all but messages, in later polls
/// and waits of the group.) poll() and the waits throw Error where the operation has failed. Example:
///     #include "tandem/comm/process_group.h"
///     bool is_summed_soon(ProcessGroup& group, const Tensor& x) {
///       const std::unique_ptr<Work> work = group.all_reduce_async(Out(x));
///       return work->wait_for(std::chrono::seconds(1));  // false: it goes on, and the next poll() or wait() moves it
///     }
class Work {
 public:
  virtual ~Work() = default;

  /// Moves it on as far as possible without waiting; true once it is complete on this rank.
  virtual bool poll() = 0;

  /// Returns once it is complete on this rank.
  virtual void wait() = 0;

  /// Where a GPU does the work: lets what is enqueued in `stream` from now on come behind it, and returns true, without
  /// waiting for any GPU; backend native may wait for other ranks to start it. Whether it is complete, or has failed,
  /// is told by later polls and waits, so it is to be kept until then. Else returns false and does nothing: then
  /// wait(). Within a WorkGraph's recording it is the end of the work, of which nothing else can be asked there.
  virtual bool join(const Stream& /*stream*/) { return false; }

  /// A count that grows whenever a poll has moved on this work, or another that moves with it, where the backend knows:
  /// who polls again and again looks at it to tell whether that was of use. No step of it means anything.
  virtual std::int64_t moves() const { return 0; }

  /// Waits for at most `time`; whether it is complete.
  bool wait_for(std::chrono::nanoseconds time);
};

/// Work that was complete when it began.
std::unique_ptr<Work> done_work();

/// What a rank does between two looks at something that others must do. First it looks again at once. After some tens
/// of microseconds, which a message of a rank that is running takes, it gives its core away in between: ranks may
/// outnumber cores, and the one that is waited for may need this one. After half a millisecond the other rank is
/// computing: then it sleeps in between.
class Patience {
 public:
  Patience() = default;
  /// `many_ranks`: there are more ranks than cores, so that looking again at once holds up the one that is waited for.
  explicit Patience(bool many_ranks) : looks_before_yield_(many_ranks ? 2 : kLooksBeforeYield) {}

  /// `moved`: the last look found that something has moved, and this begins anew.
  void pause(bool moved = false) {
    if (moved) {
      looks_ = 0;
      return;
    }
    if (++looks_ < looks_before_yield_) return;
    if (looks_ == looks_before_yield_) since_ = Clock::now();
    if (Clock::now() - since_ < kYielding) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kLooksBeforeYield = 200;
  static constexpr std::chrono::microseconds kYielding{500};
  static constexpr std::chrono::microseconds kNap{50};

  int looks_before_yield_ = kLooksBeforeYield;
  int looks_ = 0;
  Clock::time_point since_;
};

}  // namespace tandem::comm
