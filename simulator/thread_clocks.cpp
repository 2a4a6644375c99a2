// Order between threads of a block that signal each other: vector clocks over all threads, which grow only where
// kernels use mbarriers, named barriers, or fences.
#include "tandem/simulator/engine.h"
#include "tandem/simulator/mbarrier.h"
#include "tandem/simulator/named_barrier.h"

#include <algorithm>

namespace tandem::simulator {

namespace {

void merge(ThreadClock& into, const ThreadClock& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

/// Gives each lane what all have that are there.
void merge_lanes(std::vector<ThreadClock>& clocks, const WarpSlots& slots, unsigned warp) {
  if (clocks.empty()) return;
  ThreadClock all;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    if (slots[lane] != nullptr) merge(all, clocks[warp * kWarpSize + lane]);
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    if (slots[lane] != nullptr) clocks[warp * kWarpSize + lane] = all;
}

}  // namespace

void Engine::release(ThreadClock& clock) {
  const Aside aside(*this);
  Thread& self = *current_;
  clock.resize(count_);
  if (!clocks_.empty()) merge(clock, clocks_[self.linear]);
  for (unsigned lane = 0, other = self.warp() * kWarpSize; lane < kWarpSize && other < count_; ++lane, ++other)
    clock[other] = std::max(clock[other], self.known[lane]);
  clock[self.linear] = ++self.epoch;
  if (self.epoch >= Stamp::kLastWarpEpoch) start_epochs_again();
  refresh_now();
}

void Engine::acquire(const ThreadClock& clock) {
  const Aside aside(*this);
  if (clocks_.empty()) clocks_.resize(count_);
  merge(clocks_[current_->linear], clock);
}

bool Engine::has_acquired(unsigned thread, unsigned epoch) const {
  if (clocks_.empty()) return false;
  const ThreadClock& clock = clocks_[current_->linear];
  return thread < clock.size() && clock[thread] > epoch;
}

void Engine::order_clocks_of_warp(const WarpSlots& slots, unsigned warp) {
  const Aside aside(*this);
  merge_lanes(clocks_, slots, warp);
  merge_lanes(signals_.seen, slots, warp);  // the fence behind it may be another lane's
}

void Engine::fence() {
  const Aside aside(*this);
  if (signals_.sent.empty()) {
    signals_.sent.resize(count_);
    signals_.seen.resize(count_);
  }
  ThreadClock& seen = signals_.seen[current_->linear];
  if (!seen.empty()) {
    acquire(seen);
    seen.clear();
  }
  release(signals_.sent[current_->linear]);
}

void Engine::pass_signal(std::uintptr_t address) {
  if (!blocks_.at.empty() || !blocks_.sent.empty()) pass_signal_to_blocks(address);
  if (signals_.sent.empty()) return;
  const Aside aside(*this);
  const auto known = signals_.at.find(address);
  if (known != signals_.at.end()) merge(signals_.seen[current_->linear], known->second);
  const ThreadClock& sent = signals_.sent[current_->linear];
  if (!sent.empty()) merge(known != signals_.at.end() ? known->second : signals_.at[address], sent);
}

void Engine::start_epochs_again() {
  const Aside aside(*this);
  start_interval();
  for (unsigned i = 0; i < count_; ++i) {
    threads_[i].epoch = 0;
    threads_[i].known = {};
  }
  for (ThreadClock& clock : clocks_) clock.clear();
  for (ThreadClock& clock : signals_.sent) clock.clear();
  for (ThreadClock& clock : signals_.seen) clock.clear();
  signals_.at.clear();
  forget_clocks_of_mbarriers();
  forget_clocks_of_named_barriers();
}

}  // namespace tandem::simulator
