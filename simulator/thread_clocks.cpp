// Order between threads of a block that signal each other: vector clocks over all threads, which grow only where
// kernels use mbarriers or named barriers.
#include "simulator/engine.h"

#include <algorithm>

namespace tandem::simulator {

namespace {

void merge(ThreadClock& into, const ThreadClock& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
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

void Engine::order_clocks_of_warp(const std::array<void*, kWarpSize>& slots, unsigned warp) {
  if (clocks_.empty()) return;
  const Aside aside(*this);
  ThreadClock all;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    if (slots[lane] != nullptr) merge(all, clocks_[warp * kWarpSize + lane]);
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    if (slots[lane] != nullptr) clocks_[warp * kWarpSize + lane] = all;
}

}  // namespace tandem::simulator
