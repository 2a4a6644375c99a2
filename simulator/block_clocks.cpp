// Order between blocks of a launch: what a fence of the device and an atomic behind it hand on, and what an atomic and
// a fence behind it take over. Blocks run one after another, so that what comes is known of blocks that have ended.
#include "tandem/simulator/engine.h"
#include "tandem/simulator/shadow.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tandem::simulator {

namespace {

void merge(BlockPart& into, const BlockPart& from) {
  const std::pair mine(into.serial, into.barrier), other(from.serial, from.barrier);
  if (mine > other) return;
  if (mine < other) {
    into = from;
    return;
  }
  if (into.clock.size() < from.clock.size()) into.clock.resize(from.clock.size());
  for (std::size_t i = 0; i < from.clock.size(); ++i) into.clock[i] = std::max(into.clock[i], from.clock[i]);
}

void merge(BlockClock& into, const BlockClock& from) {
  for (const auto& [block, part] : from) merge(into[block], part);
}

void merge(std::vector<std::uintptr_t>& into, const std::vector<std::uintptr_t>& from) {
  for (const std::uintptr_t address : from)
    if (std::find(into.begin(), into.end(), address) == into.end()) into.push_back(address);
}

/// Of a block that did something at `serial`, if any of them is known; else of an earlier one, or null.
const BlockPart* part_of(const BlockClock& clock, std::uint64_t serial) {
  const auto next = clock.upper_bound(serial);
  return next == clock.begin() ? nullptr : &std::prev(next)->second;
}

/// The lanes among `lanes`, from the stamp's thread on, whose deed at that time lies in the part.
std::uint32_t lanes_in(const BlockPart* part, Stamp then, std::uint32_t lanes) {
  if (part == nullptr) return 0;
  if (std::pair(then.serial(), then.barrier()) != std::pair(part->serial, part->barrier))
    return std::pair(then.serial(), then.barrier()) < std::pair(part->serial, part->barrier) ? lanes : 0;
  std::uint32_t inside = 0;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const std::size_t thread = then.thread() + static_cast<unsigned>(std::countr_zero(rest));
    if (thread < part->clock.size() && part->clock[thread] > then.epoch()) inside |= rest & -rest;
  }
  return inside;
}

}  // namespace

std::uint32_t Engine::lanes_of_known_block(Stamp then, std::uint32_t lanes) const {
  if (blocks_.at.empty()) return 0;
  std::uint32_t inside = lanes_in(part_of(blocks_.known_by_all, then.serial()), then, lanes);
  if (!blocks_.known.empty()) inside |= lanes_in(part_of(blocks_.known[current_->linear], then.serial()), then, lanes);
  return inside;
}

bool Engine::has_handed_on(std::uint64_t serial) const {
  const auto next = blocks_.handing_on.upper_bound(serial);
  return next != blocks_.handing_on.begin() && serial <= std::prev(next)->second;
}

void Engine::device_fence() {
  fence();
  const Aside aside(*this);
  if (blocks_.sent.empty()) {
    blocks_.sent.resize(count_);
    blocks_.known.resize(count_);
  }
  blocks_.sent[current_->linear] = {serial_, barrier_epoch_, signals_.sent[current_->linear]};
  if (blocks_.seen.empty()) return;
  for (const auto* const seen : {&blocks_.seen[current_->linear], &blocks_.seen_by_all})
    for (const std::uintptr_t address : *seen) merge(blocks_.known[current_->linear], blocks_.at[address]);
  blocks_.seen[current_->linear].clear();
  blocks_.has_acquired = true;
}

void Engine::pass_signal_to_blocks(std::uintptr_t address) {
  if (!global_shadow().covers(address)) return;
  const Aside aside(*this);
  if (blocks_.at.contains(address)) {
    blocks_.seen.resize(count_);
    std::vector<std::uintptr_t>& seen = blocks_.seen[current_->linear];
    if (std::find(seen.begin(), seen.end(), address) == seen.end()) seen.push_back(address);
  }
  if (blocks_.sent.empty()) return;
  BlockPart part = blocks_.sent_by_all;
  merge(part, blocks_.sent[current_->linear]);
  if (part.serial == 0) return;
  BlockClock& at = blocks_.at[address];
  merge(at[first_serial_of_block_], part);
  merge(at, blocks_.known_by_all);
  merge(at, blocks_.known[current_->linear]);
  blocks_.handing_on[first_serial_of_block_] = serial_;
}

void Engine::order_block_clocks_at_barrier() {
  if (blocks_.sent.empty() && blocks_.seen.empty()) return;
  const Aside aside(*this);
  if (std::exchange(blocks_.has_acquired, false)) blocks_.seen_by_all.clear();
  for (auto& seen : blocks_.seen) {
    merge(blocks_.seen_by_all, seen);
    seen.clear();
  }
  if (blocks_.sent.empty()) return;
  for (BlockPart& part : blocks_.sent) merge(blocks_.sent_by_all, part);
  for (BlockClock& clock : blocks_.known) {
    merge(blocks_.known_by_all, clock);
    clock.clear();
  }
}

void Engine::order_block_clocks_of_warp(const WarpSlots& slots, unsigned warp) {
  if (blocks_.sent.empty() && blocks_.seen.empty()) return;
  const Aside aside(*this);
  if (!blocks_.seen.empty()) {
    std::vector<std::uintptr_t> seen;
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      if (slots[lane] != nullptr) merge(seen, blocks_.seen[warp * kWarpSize + lane]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      if (slots[lane] != nullptr) blocks_.seen[warp * kWarpSize + lane] = seen;
  }
  if (blocks_.sent.empty()) return;
  BlockPart sent;
  BlockClock known;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (slots[lane] == nullptr) continue;
    merge(sent, blocks_.sent[warp * kWarpSize + lane]);
    merge(known, blocks_.known[warp * kWarpSize + lane]);
  }
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (slots[lane] == nullptr) continue;
    blocks_.sent[warp * kWarpSize + lane] = sent;
    blocks_.known[warp * kWarpSize + lane] = known;
  }
}

void Engine::start_block_of_clocks() {
  if (!blocks_.sent.empty() || !blocks_.seen.empty())
    blocks_ = {.at = std::move(blocks_.at), .handing_on = std::move(blocks_.handing_on)};
}

void Engine::finish_block_of_clocks() {
  if (const auto mine = blocks_.handing_on.find(first_serial_of_block_); mine != blocks_.handing_on.end())
    mine->second = serial_;
}

}  // namespace tandem::simulator
