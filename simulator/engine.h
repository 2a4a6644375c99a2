// The running launch: one block at a time, its threads taking turns.
//
// A thread runs until it must wait: at a barrier, or for the lanes of its warp. Then the next one in order goes on.
// That is the harshest schedule for a missing barrier, and it costs one switch per wait.
#pragma once

#include "tandem/simulator/builtins.h"
#include "tandem/simulator/fault.h"
#include "tandem/simulator/ready_set.h"
#include "tandem/simulator/settings.h"
#include "tandem/simulator/stamp.h"
#include "tandem/simulator/thread.h"

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace tandem::simulator {

/// One kernel launch. `body(arguments)` calls the kernel once, as one thread.
struct Launch {
  const void* kernel = nullptr;
  dim3 grid, block;
  std::size_t dynamic_shared_bytes = 0;
  void (*body)(const void* arguments) = nullptr;
  const void* arguments = nullptr;
  std::size_t argument_bytes = 0;
  std::source_location where;
};

/// What is known of each thread of a block: everything that it did before this epoch.
using ThreadClock = std::vector<std::uint16_t>;

/// What is known of another block of the launch: all that it did before an interval between its barriers, and what
/// `clock` says of that interval. Nothing where the serial is 0.
struct BlockPart {
  std::uint64_t serial = 0;
  unsigned barrier = 0;
  ThreadClock clock;
};
/// Of several blocks, by the first serial of each.
using BlockClock = std::map<std::uint64_t, BlockPart>;

/// Runs one launch after another; all state of the block that runs is here. One per process, used under one lock.
class Engine {
 public:
  /// Runs all blocks, in this thread. Throws Fault.
  void run(const Launch& launch);

  /// True while a kernel runs in this thread of the host: what code does now, a CUDA thread does. Other threads of the
  /// host may run instrumented code meanwhile: host code of .cu files, and inline functions that the linker took there.
  bool running() const { return running_; }

  // Called by the threads of a block.
  Thread& current() { return *current_; }
  /// __syncthreads(); gives the number of threads that came with a `vote`.
  int barrier(std::source_location where, bool vote = false);
  /// Waits until all lanes of `mask` that have not left the kernel have come with the same operation; the last one
  /// calls `finish` with all slots (null for lanes that are not there), and every lane goes on.
  using Finish = FinishMeeting;
  void meet(WarpOperation operation, unsigned mask, void* slot, Finish finish, std::source_location where);
  /// Waits until another thread wakes this one; `in` says in what, for messages.
  void sleep(const char* in, std::source_location where);
  void wake(unsigned linear);
  /// Notes that the running thread has read the same as before at `where`, as one does that waits for a flag: now and
  /// then others get their turn. Where nobody has changed memory for long and all threads come back to where they were,
  /// registers and stacks included, the launch ends with a fault: they would go on like that for ever.
  void poll(SiteId where);
  /// Notes that what others may wait for has changed.
  void note_change() { polls_ = 0; }
  /// Lanes of a warp that have left the kernel, or that the block never had.
  unsigned absent_lanes(unsigned warp) const { return warps_[warp].absent; }
  /// Ends the launch with a Fault that names kernel, block, thread and `where`; a race also has another place.
  [[noreturn]] void raise(FaultKind kind, SiteId where, std::string what, SiteId other = 0);

  const Launch& launch() const { return *launch_; }
  std::string kernel_name() const;
  /// "block (0,0,0), thread (3,0,0)"
  std::string name_of_thread(unsigned linear) const;
  const FiberStacks& stacks() const { return stacks_; }
  std::uint64_t switches() const { return switches_; }

  // Order of memory accesses, for the shadow: see stamp.h.
  std::uint64_t block_serial() const { return serial_; }
  std::uint64_t first_serial_of_block() const { return first_serial_of_block_; }
  std::uint64_t first_serial_of_launch() const { return first_serial_of_launch_; }
  /// The stamp of what the running thread does now, for plain accesses.
  std::uint64_t now() const { return now_; }
  /// A new number for a piece of work that touches memory: a block, or a copy.
  std::uint64_t next_serial();
  // Order between threads by other means than __syncthreads() and __syncwarp(); see thread_clocks.cpp.
  /// Notes in `clock` what the running thread has done and knows: who acquires it comes after all that.
  void release(ThreadClock& clock);
  void acquire(const ThreadClock& clock);
  /// True if the running thread has acquired what `thread` did in `epoch`.
  bool has_acquired(unsigned thread, unsigned epoch) const;
  /// False where no thread of the block has acquired anything.
  bool has_acquired_any() const { return !clocks_.empty(); }
  /// __threadfence_block(): atomics after it hand on what the thread has done so far, and what atomics before it were
  /// handed is acquired, within the block.
  void fence();
  /// __threadfence(): the same, also between blocks. See block_clocks.cpp.
  void device_fence();
  /// An atomic operation of the running thread.
  void pass_signal(std::uintptr_t address);
  /// Of `lanes`, which count from the stamp's thread on, those whose deed in an earlier block of this launch the
  /// running thread comes after.
  std::uint32_t lanes_of_known_block(Stamp then, std::uint32_t lanes) const;
  /// Whether a block of this launch, one that has a serial, has handed on to others what it had done.
  bool has_handed_on(std::uint64_t serial) const;

  /// While one lives, what the running thread does is the simulator's own work, not the kernel's.
  class Aside {
   public:
    explicit Aside(Engine& engine) : engine_(engine), was_running_(engine.running_) { engine_.running_ = false; }
    ~Aside() { engine_.running_ = was_running_; }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

   private:
    Engine& engine_;
    bool was_running_;
  };

  /// While one lives, what the running thread does counts as not done yet: nobody who acquires its clock comes after.
  class Unfinished {
   public:
    explicit Unfinished(Engine& engine) : engine_(engine), now_(engine.now_) {
      const Stamp now(now_);
      engine.now_ =
          Stamp::make(now.serial(), now.barrier(), Stamp::kUnfinishedEpoch, now.thread(), now.atomic()).bits();
    }
    ~Unfinished() { engine_.now_ = now_; }
    Unfinished(const Unfinished&) = delete;
    Unfinished& operator=(const Unfinished&) = delete;

   private:
    Engine& engine_;
    std::uint64_t now_;
  };

  friend void thread_main(boost::context::detail::transfer_t transfer);

 private:
  static constexpr unsigned kMeetingsInTurn = 64 * kWarpSize;
  static constexpr unsigned kPollsInTurn = 32;
  // Polls since memory has changed. Threads are looked at after kFirstLook of them, and again after twice as many each
  // time, over kLookPolls; with kMostPolls, a minute's worth, the launch ends whatever its threads do.
  static constexpr unsigned kFirstLook = 1u << 22, kLookPolls = 1u << 19, kMostPolls = 1u << 30;

  void check_limits() const;
  void run_block(unsigned linear_block);
  void prepare_order();
  void switch_to_next(unsigned from_position);
  void thread_exits();
  void release_barrier();
  [[noreturn, gnu::cold]] void refuse_barrier(std::source_location where);
  void complete_meetings_without(const Thread& exiting);
  void check_mask(const Thread& self);
  void join_mixed_meeting(const Thread& self);
  bool mixed_meeting_is_complete(const Thread& arriving) const;
  // Not inlined: what waits should have small frames, as many threads' stacks share a cache.
  [[gnu::noinline]] void complete_meeting(Thread& self, Finish finish, unsigned present);
  void let_others_run();
  /// Compares the threads with what they were when this look began; that of the running thread, at its turns.
  [[gnu::cold]] void look_for_progress();
  std::uint64_t hash_of_threads() const;
  [[noreturn, gnu::cold]] void raise_deadlock();
  [[noreturn, gnu::cold]] void raise_no_change();
  std::string describe_waiting(std::array<const Thread*, 2>& examples) const;
  void refresh_now() { now_ = Stamp::make(serial_, barrier_epoch_, current_->epoch, current_->linear, false).bits(); }
  void order_warp(const WarpSlots& slots, Thread& any);
  /// What comes from now on is ordered after all that the block has done, as by a barrier.
  void start_interval();
  /// Stamps hold small epochs only. Who would exceed them starts a new interval, in which all start from 0.
  [[gnu::cold]] void start_epochs_again();
  void order_clocks_of_warp(const WarpSlots& slots, unsigned warp);
  void pass_signal_to_blocks(std::uintptr_t address);
  void order_block_clocks_at_barrier();
  void order_block_clocks_of_warp(const WarpSlots& slots, unsigned warp);
  void start_block_of_clocks();
  void finish_block_of_clocks();

  FiberStacks stacks_;
  std::array<Thread, kMaxBlockThreads> threads_;
  std::array<unsigned, kMaxBlockThreads> thread_at_{};  // by position
  std::vector<ThreadClock> clocks_;                     // by thread; empty where none has acquired anything
  /// What fences and atomics of the running block hand on; see fence().
  struct Signals {
    std::vector<ThreadClock> sent;  // by thread, at its last fence; empty where nobody has used one
    std::vector<ThreadClock> seen;  // by thread, of the atomics since
    std::unordered_map<std::uintptr_t, ThreadClock> at;  // by address
  } signals_;
  /// What fences of the device and atomics hand on between the blocks of the launch.
  struct BlockSignals {
    using Addresses = std::vector<std::uintptr_t>;      // once each
    std::unordered_map<std::uintptr_t, BlockClock> at;  // by address in global memory
    std::map<std::uint64_t, std::uint64_t> handing_on;  // blocks that have done so: first and last serial
    // Of the running block; empty where it has used no such fence or atomic.
    std::vector<BlockPart> sent = {};    // by thread, at its last fence
    BlockPart sent_by_all = {};          // before the last barrier
    std::vector<Addresses> seen = {};    // by thread, of the atomics since its last fence
    Addresses seen_by_all = {};          // before the last barrier, and by no fence acquired before that
    bool has_acquired = false;           // a thread has, by a fence since the last barrier
    std::vector<BlockClock> known = {};  // by thread
    BlockClock known_by_all = {};        // before the last barrier
  } blocks_;
  /// Who of a warp is not or no longer there, who waits, and for which meeting; `mixed` if they wait for more than one.
  struct Warp {
    unsigned absent = 0, waiting = 0;
    unsigned mask = 0;
    WarpOperation operation{};
    bool mixed = false;
  };
  std::array<Warp, kMaxBlockThreads / kWarpSize> warps_{};
  ReadySet ready_;
  Fiber main_;
  Thread* current_ = nullptr;
  const Launch* launch_ = nullptr;
  constinit static inline thread_local bool running_ = false;
  unsigned count_ = 0, live_ = 0, at_barrier_ = 0;
  unsigned meetings_ = 0;  // how often a lane has waited for its warp
  unsigned polls_ = 0;     // since something has changed
  struct {
    unsigned thread = 0;     // at whose turns the others are looked at
    std::uint64_t hash = 0;  // of all threads, when it was its turn first
    bool wanted = false, none_progresses = false;
  } look_;
  int votes_ = 0, vote_result_ = 0;
  unsigned barrier_epoch_ = 0;
  std::source_location barrier_at_;  // of the first thread that waits
  std::uint64_t now_ = 0;
  std::uint64_t serial_ = 0, first_serial_of_block_ = 0, first_serial_of_launch_ = 0;
  std::uint64_t switches_ = 0;
  std::uint64_t random_ = 1;

  struct PendingFault {
    bool raised = false;
    FaultKind kind{};
    SiteId where = 0, other = 0;
    std::string what;
    unsigned thread = 0;
  } fault_;
};

inline void Engine::switch_to_next(unsigned from_position) {
  const int position = ready_.next(from_position);
  if (position < 0) raise_deadlock();
  Thread& next = threads_[thread_at_[static_cast<unsigned>(position)]];
  if (&next == current_) return;
  // Who is likely to come after it: stacks of a block do not fit into the fastest cache.
  const char* const following =
      static_cast<const char*>(threads_[thread_at_[(position + 1) % kMaxBlockThreads]].fiber.context);
  for (int line = 0; line < 3; ++line) __builtin_prefetch(following + line * 64, 1);
  ++switches_;
  Thread& previous = *current_;
  current_ = &next;
  refresh_now();
  ::threadIdx = next.index;
  switch_fiber(previous.fiber, next.fiber, previous.state == ThreadState::exited);
}

inline void Engine::poll(SiteId where) {
  current_->polls_at = where;
  if (++polls_ % kPollsInTurn == 0) let_others_run();
}

inline void Engine::meet(WarpOperation operation, unsigned mask, void* slot, Finish finish,
                         std::source_location where) {
  Thread& self = *current_;
  Warp& warp = warps_[self.warp()];
  self.where = where;
  self.request = {operation, mask, slot, finish};
  const unsigned lane_bit = 1u << self.lane();
  if ((mask & lane_bit) == 0 || ((mask & warp.absent) != 0 && needs_all_lanes(operation))) check_mask(self);
  if (warp.waiting == 0) {
    warp.operation = operation;
    warp.mask = mask;
    warp.mixed = false;
  } else {
    warp.mixed |= warp.operation != operation || warp.mask != mask;
    if (warp.mixed) join_mixed_meeting(self);
  }
  warp.waiting |= lane_bit;
  const unsigned present = mask & ~warp.absent;
  if ((warp.waiting & present) != present || (warp.mixed && !mixed_meeting_is_complete(self))) {
    self.state = ThreadState::at_warp;
    ready_.erase(self.position);
    // First its own warp's lanes, whose stacks are in the cache; now and then others, should this warp wait for them.
    const bool stay = ++meetings_ % kMeetingsInTurn != 0;
    switch_to_next(stay ? self.position / kWarpSize * kWarpSize : self.position);
    self.state = ThreadState::ready;
    return;
  }
  complete_meeting(self, finish, present);
}

namespace detail {
inline Engine* the_engine = nullptr;
Engine& make_engine();
}  // namespace detail

/// Made at the first use.
inline Engine& engine() { return detail::the_engine != nullptr ? *detail::the_engine : detail::make_engine(); }

}  // namespace tandem::simulator
