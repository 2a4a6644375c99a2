// Running a grid: blocks one after another, the order of threads, barriers, faults.
#include "tandem/simulator/engine.h"

#include "tandem/simulator/async_copy.h"
#include "tandem/simulator/builtins.h"
#include "tandem/simulator/coverage.h"
#include "tandem/simulator/lint.h"
#include "tandem/simulator/mbarrier.h"
#include "tandem/simulator/named_barrier.h"
#include "tandem/simulator/shadow.h"
#include "tandem/simulator/shared_memory.h"
#include "tandem/simulator/warpgroup.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace tandem::simulator {

namespace {

/// xorshift64*: the order of threads needs no better numbers.
std::uint64_t next_random(std::uint64_t& state) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545F4914F6CDD1Dull;
}

template <typename Values>
void shuffle(Values& values, unsigned count, std::uint64_t& state) {
  for (unsigned i = count; i > 1; --i) std::swap(values[i - 1], values[(next_random(state) >> 33) % i]);
}

uint3 unflatten(unsigned linear, const dim3& sizes) {
  return {linear % sizes.x, linear / sizes.x % sizes.y, linear / sizes.x / sizes.y};
}

std::string text(const uint3& index) { return fmt::format("({},{},{})", index.x, index.y, index.z); }

}  // namespace

Engine& detail::make_engine() {
  static Engine engine;
  the_engine = &engine;
  return engine;
}

std::string Engine::kernel_name() const { return launch_ == nullptr ? "no kernel" : function_name(launch_->kernel); }

std::string Engine::name_of_thread(unsigned linear) const {
  return fmt::format("block {}, thread {}", text(blockIdx), text(unflatten(linear, launch_->block)));
}

std::uint64_t Engine::next_serial() {
  if (serial_ + 1 >= Stamp::kMaxSerial) {
    forget_order();
    blocks_ = {};
    serial_ = 0;
  }
  return ++serial_;
}

void Engine::check_limits() const {
  const auto refuse = [&](const std::string& what) {
    throw Fault(FaultKind::limit, kernel_name(), {launch_->where.file_name(), launch_->where.line()}, {},
                fmt::format("simulator: {} is launched with {}\n  at {}:{}", kernel_name(), what,
                            launch_->where.file_name(), launch_->where.line()));
  };
  const dim3 &grid = launch_->grid, &block = launch_->block;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > kMaxBlockThreads || block.x > 1024 || block.y > 1024 || block.z > 64)
    refuse(fmt::format("blocks of {} x {} x {} threads; a block has 1 to 1024, at most 64 of them in z", block.x,
                       block.y, block.z));
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
    refuse(fmt::format("a grid of {} x {} x {} blocks; each is at least 1, y and z at most 65535", grid.x, grid.y,
                       grid.z));
}

void Engine::run(const Launch& launch) {
  launch_ = &launch;
  check_limits();
  count_ = launch.block.x * launch.block.y * launch.block.z;
  ::gridDim = launch.grid;
  ::blockDim = launch.block;
  random_ = settings().seed * 0x9E3779B97F4A7C15ull | 1;
  start_shared_memory(launch.dynamic_shared_bytes);
  record_launch(launch.kernel, count_, launch.dynamic_shared_bytes);
  start_lint(launch.kernel);
  first_serial_of_launch_ = serial_ + 1;
  fault_ = {};
  blocks_ = {};

  const auto blocks = static_cast<unsigned>(launch.grid.x * launch.grid.y * launch.grid.z);
  const Order order = settings().order;
  std::vector<unsigned> random_order;
  if (order == Order::random) {
    random_order.resize(blocks);
    std::iota(random_order.begin(), random_order.end(), 0u);
    shuffle(random_order, blocks, random_);
  }
  for (unsigned i = 0; i < blocks && !fault_.raised; ++i) {
    run_block(order == Order::forward ? i : order == Order::reverse ? blocks - 1 - i : random_order[i]);
  }
  finish_lint();
  if (!fault_.raised) {
    launch_ = nullptr;
    return;
  }
  // Fibers that were abandoned never run again; their destructors do not either, and need not in device code.
  stacks_.clean();
  const std::string name = kernel_name();
  const Site site = site_of(fault_.where);
  const std::string report =
      fmt::format("simulator: {} in {}: {}\n  at {}, {}\n  launched at {}:{}", name_of(fault_.kind), name, fault_.what,
                  site.text(), name_of_thread(fault_.thread), launch.where.file_name(), launch.where.line());
  launch_ = nullptr;
  throw Fault(fault_.kind, name, site, fault_.other == 0 ? Site{} : site_of(fault_.other), report);
}

void Engine::prepare_order() {
  for (unsigned i = 0; i < count_; ++i) thread_at_[i] = settings().order == Order::reverse ? count_ - 1 - i : i;
  if (settings().order == Order::random) shuffle(thread_at_, count_, random_);
  for (unsigned i = 0; i < count_; ++i) threads_[thread_at_[i]].position = static_cast<std::uint16_t>(i);
}

void thread_main(boost::context::detail::transfer_t transfer) {
  fiber_entered(transfer);
  Engine& self = engine();
  self.launch_->body(self.launch_->arguments);
  self.thread_exits();
}

void Engine::run_block(unsigned linear_block) {
  ::blockIdx = unflatten(linear_block, launch_->grid);
  serial_ = next_serial();
  first_serial_of_block_ = serial_;
  barrier_epoch_ = 0;
  live_ = count_;
  at_barrier_ = 0;
  votes_ = 0;
  polls_ = 0;
  if (!signals_.sent.empty()) signals_ = {};
  start_block_of_clocks();
  warps_ = {};
  for (unsigned thread = count_; thread % kWarpSize != 0; ++thread)
    warps_[thread / kWarpSize].absent |= 1u << thread % kWarpSize;
  start_block_of_shared_memory();
  clear_async_copies();
  clear_mbarriers();
  clear_named_barriers();
  clear_warpgroup_products();
  ready_.clear();
  prepare_order();
  for (unsigned i = 0; i < count_; ++i) {
    Thread& thread = threads_[i];
    thread.linear = i;
    thread.index = unflatten(i, launch_->block);
    thread.state = ThreadState::ready;
    thread.polls_at = 0;
    if (thread.epoch != 0 || !clocks_.empty()) {
      thread.epoch = 0;
      thread.known = {};
    }
    stacks_.prepare(thread.fiber, i, &thread_main);
  }
  clocks_.clear();
  ready_.fill(count_);
  current_ = &threads_[thread_at_[0]];
  ::threadIdx = current_->index;
  refresh_now();
  running_ = true;
  switch_fiber(main_, current_->fiber);
  while (std::exchange(look_.wanted, false)) {
    look_for_progress();
    switch_fiber(main_, current_->fiber);
  }
  running_ = false;
  current_ = nullptr;
  finish_block_of_clocks();
  if constexpr (kChecksMemory) global_shadow().finish_block();
  if (!fault_.raised) finish_block_of_lint();
}

void Engine::thread_exits() {
  Thread& self = *current_;
  check_async_copies_at_exit(self);
  check_warpgroup_products_at_exit(self);
  if (live_ == 1) check_mbarriers_at_end();
  self.state = ThreadState::exited;
  ready_.erase(self.position);
  warps_[self.warp()].absent |= 1u << self.lane();
  --live_;
  note_change();
  if (live_ == 0) {
    ++switches_;
    switch_fiber(self.fiber, main_, true);
  }
  complete_meetings_without(self);
  leave_named_barriers(self);
  unsigned from = self.position;
  if (at_barrier_ == live_) {
    release_barrier();
    from = 0;
  }
  switch_to_next(from);
}

int Engine::barrier(std::source_location where, bool vote) {
  Thread& self = *current_;
  self.state = ThreadState::at_barrier;
  self.where = where;
  if (at_barrier_++ == 0) {
    barrier_at_ = where;
  } else if (where.line() != barrier_at_.line() || where.file_name() != barrier_at_.file_name()) {
    refuse_barrier(where);
  }
  ready_.erase(self.position);
  votes_ += vote ? 1 : 0;
  unsigned from = self.position;
  if (at_barrier_ == live_) {
    release_barrier();
    from = 0;
  }
  switch_to_next(from);
  self.state = ThreadState::ready;
  return vote_result_;
}

void Engine::sleep(const char* in, std::source_location where) {
  Thread& self = *current_;
  self.state = ThreadState::asleep;
  self.where = where;
  self.asleep_in = in;
  ready_.erase(self.position);
  switch_to_next(self.position);
}

void Engine::wake(unsigned linear) {
  threads_[linear].state = ThreadState::ready;
  ready_.insert(threads_[linear].position);
}

void Engine::refuse_barrier(std::source_location where) {
  raise(FaultKind::barrier, site_id(where),
        fmt::format("threads wait in different __syncthreads(): some in the one at {}:{}", barrier_at_.file_name(),
                    barrier_at_.line()),
        site_id(barrier_at_));
}

void Engine::release_barrier() {
  if (settings().order == Order::random) prepare_order();
  if (live_ == count_) {
    ready_.fill(count_);
  } else {
    for (unsigned i = 0; i < count_; ++i)
      if (threads_[i].state != ThreadState::exited) ready_.insert(threads_[i].position);
  }
  at_barrier_ = 0;
  vote_result_ = votes_;
  votes_ = 0;
  start_interval();
  refresh_now();
}

void Engine::start_interval() {
  order_block_clocks_at_barrier();
  if (++barrier_epoch_ < Stamp::kMaxBarrierEpoch) return;
  serial_ = next_serial();
  barrier_epoch_ = 0;
}

void Engine::let_others_run() {
  if (polls_ >= kFirstLook && polls_ - std::bit_floor(polls_) < kLookPolls &&
      (std::has_single_bit(polls_) || current_->linear == look_.thread)) {
    // From outside: only then are the registers of all threads on their stacks.
    look_.wanted = true;
    switch_fiber(current_->fiber, main_);
    if (look_.none_progresses || polls_ >= kMostPolls) raise_no_change();
  }
  switch_to_next((current_->position + 1u) % kMaxBlockThreads);
}

void Engine::look_for_progress() {
  const std::uint64_t hash = hash_of_threads();
  if (std::has_single_bit(polls_)) {
    look_ = {current_->linear, hash, false, false};
  } else {
    look_.none_progresses = hash == look_.hash;
  }
}

// Without AddressSanitizer's checks, as it reads what lies between the variables as well.
[[gnu::no_sanitize_address]] std::uint64_t Engine::hash_of_threads() const {
  using Word [[gnu::may_alias]] = std::uint64_t;
  std::uint64_t hash = 0;
  for (unsigned i = 0; i < count_; ++i) {
    const Thread& thread = threads_[i];
    if (thread.state == ThreadState::exited) continue;
    hash += i;
    const char* const end = stacks_.high_end(i);
    for (const auto* at = static_cast<const char*>(thread.fiber.context); at < end; at += sizeof(Word))
      hash = (hash ^ *reinterpret_cast<const Word*>(at)) * 0x9E3779B97F4A7C15ull + (hash >> 29);
  }
  return hash;
}

void Engine::raise(FaultKind kind, SiteId where, std::string what, SiteId other) {
  // Nothing on this stack is destroyed: what owns memory has to be moved away.
  running_ = false;
  fault_ = {true, kind, where, other, std::move(what), current_->linear};
  switch_fiber(current_->fiber, main_, true);
  __builtin_unreachable();
}

std::string Engine::describe_waiting(std::array<const Thread*, 2>& examples) const {
  constexpr std::size_t kMostPlaces = 4;
  std::string text;
  std::vector<std::string> seen;
  for (unsigned i = 0; i < count_; ++i) {
    const Thread& thread = threads_[i];
    if (thread.state == ThreadState::exited) continue;
    const bool polls = ready_.contains(thread.position);
    if (polls && thread.polls_at == 0) continue;  // it may go on
    const char* const in = polls                                     ? nullptr
                           : thread.state == ThreadState::at_barrier ? "__syncthreads()"
                           : thread.state == ThreadState::asleep     ? thread.asleep_in
                                                                     : name_of(thread.request.operation);
    const std::string place = site_of(polls ? thread.polls_at : site_id(thread.where)).text();
    if (seen.size() == kMostPlaces || std::find(seen.begin(), seen.end(), place) != seen.end()) continue;
    if (seen.size() < examples.size()) examples[seen.size()] = &thread;
    seen.push_back(place);
    text +=
        polls ? fmt::format("\n  thread {} reads the same again and again at {}", simulator::text(thread.index), place)
              : fmt::format("\n  thread {} waits in {} at {}", simulator::text(thread.index), in, place);
  }
  return text;
}

void Engine::raise_deadlock() {
  const Aside aside(*this);
  std::array<const Thread*, 2> examples{};
  std::string what = "no thread can go on" + describe_waiting(examples);
  raise(at_barrier_ > 0 ? FaultKind::barrier : FaultKind::deadlock,
        examples[0] == nullptr ? 0 : site_id(examples[0]->where), std::move(what),
        examples[1] == nullptr ? 0 : site_id(examples[1]->where));
}

void Engine::raise_no_change() {
  const Aside aside(*this);
  std::array<const Thread*, 2> examples{};
  std::string what = "threads wait for what none of them changes" + describe_waiting(examples);
  if (launch_->grid.x * launch_->grid.y * launch_->grid.z > 1)
    what += "\n  (blocks run one after another here: what a later one would change, an earlier one cannot wait for)";
  raise(FaultKind::deadlock, current_->polls_at, std::move(what));
}

const char* name_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::race:
      return "data race";
    case FaultKind::barrier:
      return "divergent barrier";
    case FaultKind::deadlock:
      return "deadlock";
    case FaultKind::out_of_bounds:
      return "access out of bounds";
    case FaultKind::host_pointer:
      return "host pointer used in a kernel";
    case FaultKind::uninitialised:
      return "read of uninitialised memory";
    case FaultKind::misaligned:
      return "misaligned access";
    case FaultKind::mask:
      return "wrong mask";
    case FaultKind::async_copy:
      return "wrong asynchronous copy";
    case FaultKind::limit:
      return "limit exceeded";
  }
  return "fault";
}

}  // namespace tandem::simulator
