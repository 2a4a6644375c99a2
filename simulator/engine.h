// The running launch: one block at a time, its threads taking turns.
//
// A thread runs until it must wait: at a barrier, or for the lanes of its warp. Then the next one in order goes on.
// That is the harshest schedule for a missing barrier, and it costs one switch per wait.
#pragma once

#include "simulator/fault.h"
#include "simulator/ready_set.h"
#include "simulator/settings.h"
#include "simulator/thread.h"

#include <string>
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

/// Runs one launch after another; all state of the block that runs is here. One per process, used under one lock.
class Engine {
 public:
  /// Runs all blocks, in this thread. Throws Fault.
  void run(const Launch& launch);

  /// True while a kernel runs: what code does now, a CUDA thread does.
  bool running() const { return running_; }

  // Called by the threads of a block.
  Thread& current() { return *current_; }
  /// __syncthreads(); gives the number of threads that came with a `vote`.
  int barrier(const std::source_location& where, bool vote = false);
  /// Waits until all lanes of `mask` have come with the same operation; the last one calls `finish` with all slots
  /// (null for lanes outside of the mask), and every lane goes on.
  using Finish = void (*)(const std::array<void*, kWarpSize>& slots, unsigned mask);
  void meet(WarpOperation operation, unsigned mask, void* slot, Finish finish, const std::source_location& where);
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

  friend void thread_main(boost::context::detail::transfer_t transfer);

 private:
  void check_limits() const;
  void run_block(unsigned linear_block);
  void prepare_order();
  void switch_to_next(unsigned from_position);
  void switch_to(Thread& next);
  void thread_exits();
  void release_barrier();
  void check_who_waits_for(const Thread& exiting);
  void join_meeting(Thread& self);
  bool meeting_is_complete(const Thread& arriving) const;
  [[noreturn]] void raise_deadlock();
  std::string describe_waiting(std::array<const Thread*, 2>& examples) const;
  void refresh_now();
  void order_warp(const std::array<void*, kWarpSize>& slots, Thread& any);

  FiberStacks stacks_;
  std::array<Thread, kMaxBlockThreads> threads_;
  std::array<unsigned, kMaxBlockThreads> thread_at_{};  // by position
  std::array<unsigned, kMaxBlockThreads / kWarpSize> waiting_lanes_{};
  std::array<unsigned, kMaxBlockThreads / kWarpSize> exited_lanes_{};
  // The meeting that lanes of a warp wait for; `mixed` if they wait for more than one.
  struct Forming {
    WarpOperation operation;
    bool mixed;
    unsigned mask;
  };
  std::array<Forming, kMaxBlockThreads / kWarpSize> forming_{};
  ReadySet ready_;
  Fiber main_;
  Thread* current_ = nullptr;
  const Launch* launch_ = nullptr;
  bool running_ = false;
  unsigned count_ = 0, live_ = 0, at_barrier_ = 0;
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

namespace detail {
inline Engine* the_engine = nullptr;
Engine& make_engine();
}  // namespace detail

/// Made at the first use.
inline Engine& engine() { return detail::the_engine != nullptr ? *detail::the_engine : detail::make_engine(); }

}  // namespace tandem::simulator
