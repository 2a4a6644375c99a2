// Streams, events and the order between pieces of work: kernels, copies, fills.
//
// Every piece of work carries a vector clock: for each stream, how much of it is known to be done before. Work A
// happens before work B if B's clock covers A. The same clocks tell the race detector whether two launches are ordered,
// and a deferred stream whether it may go on.
#pragma once

#include "tandem/simulator/site.h"

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tandem::simulator {

/// How far each stream is known to have come; streams beyond its end: not at all.
class Clock {
 public:
  std::uint32_t of(std::size_t stream) const { return stream < counts_.size() ? counts_[stream] : 0; }
  void set(std::size_t stream, std::uint32_t count);
  void merge(const Clock& other);
  std::size_t size() const { return counts_.size(); }

 private:
  std::vector<std::uint32_t> counts_;
};

struct Work {
  std::string name;
  SiteId where = 0;
  std::size_t stream = 0;
  std::uint32_t index = 0;         // counts from 1 in its stream
  Clock clock;                     // of what must be done before, itself included
  std::uint64_t first_serial = 0;  // set when it runs
  std::function<void()> run;
  std::function<bool()> may_begin;  // by what another process has done; null: it need not do anything
};

struct Capture;  // capture.h

struct StreamState {
  std::size_t id = 0;
  int device = 0;
  bool is_default = false;
  bool blocking = false;  // ordered with the default stream
  Clock clock;
  std::uint32_t enqueued = 0, done = 0;
  std::deque<std::shared_ptr<Work>> queue;
  std::shared_ptr<Capture> capture;        // that it is part of, or null
  std::vector<std::size_t> captured_last;  // nodes of it, ascending, that the next one waits for
};

class Timeline {
 public:
  /// The default stream of a device exists from the start.
  StreamState& default_stream(int device);
  StreamState& make_stream(int device, bool blocking, bool is_default = false);

  /// Adds work to a stream, and runs it at once unless streams are deferred. What the work throws comes out of here, or
  /// of the call that waits for it.
  void enqueue(StreamState& stream, std::string name, SiteId where, std::function<void()> run,
               std::function<bool()> may_begin = nullptr);

  /// What an event stands for: all work of the stream so far.
  Clock record(StreamState& stream) const { return stream.clock; }
  void wait(StreamState& stream, const Clock& clock);

  /// Runs what must run, and lets the host know.
  void synchronize(const Clock& clock);
  void synchronize(StreamState& stream);
  void synchronize_all();
  /// Runs of what must run as much as waits for no other process; true if that was all. The host knows nothing of it.
  bool run_towards(const Clock& clock) {
    while (!is_done(clock))
      if (!run_one(&clock)) return false;
    return true;
  }
  bool is_done(const Clock& clock) const;
  /// Runs one piece of deferred work, if there is any: a host that polls sees its streams move on.
  void advance() {
    throw_kept_fault();
    run_one(nullptr);
  }
  /// Of work that ran while no call waited for it: comes out of the next one that enqueues, waits or asks.
  void keep_fault(std::exception_ptr fault) {
    if (!kept_fault_) kept_fault_ = std::move(fault);
  }

  /// True if the work that had this serial number happened before the one that runs now.
  bool happened_before_current(std::uint64_t serial);
  /// "cudaMemcpyAsync on stream 2", for messages.
  std::string name_of(std::uint64_t serial) const;
  const Work* current() const { return current_; }
  void forget();

 private:
  void throw_kept_fault() {
    if (kept_fault_) std::rethrow_exception(std::exchange(kept_fault_, nullptr));
  }
  void run(const std::shared_ptr<Work>& work);
  void synchronize_work(const Clock& clock);
  bool may_run(const Work& work) const;
  bool waits_for_process() const;
  bool run_one(const Clock* needed);
  const Work* find(std::uint64_t serial) const;

  std::deque<StreamState> streams_;
  std::vector<std::shared_ptr<Work>> history_;  // by first_serial; what the host has not waited for
  std::uint64_t settled_below_ = 0;             // serials below belong to work that the host has waited for
  Clock host_;
  const Work* current_ = nullptr;
  std::uint64_t random_ = 0;
  std::exception_ptr kept_fault_;
};

Timeline& timeline();
/// Guards the timeline, device memory and the engine.
std::recursive_mutex& runtime_mutex();

bool happened_before_current(std::uint64_t serial);
std::string name_of_work(std::uint64_t serial);
void forget_timeline();

}  // namespace tandem::simulator
