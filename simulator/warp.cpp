// Meetings of the lanes of a warp.
#include "simulator/engine.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::simulator {

const char* name_of(WarpOperation operation) {
  switch (operation) {
    case WarpOperation::sync:
      return "__syncwarp()";
    case WarpOperation::shuffle:
      return "a shuffle";
    case WarpOperation::vote:
      return "a vote";
    case WarpOperation::match:
      return "a match";
    case WarpOperation::reduce:
      return "a warp reduction";
    case WarpOperation::load_matrix:
      return "ldmatrix";
    case WarpOperation::multiply:
      return "mma";
  }
  return "a warp operation";
}

namespace {

/// Lanes of this warp that have threads: the last warp of a block may be cut off.
unsigned existing_lanes(unsigned warp, unsigned block_threads) {
  const unsigned lanes = std::min(block_threads - warp * kWarpSize, kWarpSize);
  return lanes == kWarpSize ? 0xffffffffu : (1u << lanes) - 1;
}

}  // namespace

void Engine::order_warp(const std::array<void*, kWarpSize>& slots, Thread& any) {
  Thread* const lanes = &threads_[any.warp() * kWarpSize];
  std::array<std::uint16_t, kWarpSize> merged{};
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (slots[lane] == nullptr) continue;
    for (unsigned i = 0; i < kWarpSize; ++i) merged[i] = std::max(merged[i], lanes[lane].known[i]);
  }
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (slots[lane] != nullptr) merged[lane] = ++lanes[lane].epoch;
  }
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (slots[lane] != nullptr) lanes[lane].known = merged;
  }
}

void Engine::check_who_waits_for(const Thread& exiting) {
  const unsigned warp = exiting.warp();
  for (unsigned others = waiting_lanes_[warp]; others != 0; others &= others - 1) {
    const Thread& other = threads_[warp * kWarpSize + static_cast<unsigned>(std::countr_zero(others))];
    if ((other.request.mask >> exiting.lane() & 1u) == 0) continue;
    raise(FaultKind::mask, site_id(other.where),
          fmt::format("lane {} left the kernel; lane {} waits for it in {} with mask {:#010x}", exiting.lane(),
                      other.lane(), name_of(other.request.operation), other.request.mask));
  }
}

void Engine::join_meeting(Thread& self) {
  const unsigned warp = self.warp(), lane = self.lane();
  Forming& forming = forming_[warp];
  const WarpRequest& request = self.request;
  if (waiting_lanes_[warp] == 0) forming = {request.operation, false, request.mask};
  if (!forming.mixed && forming.operation == request.operation && forming.mask == request.mask) return;
  forming.mixed = true;
  Thread* const lanes = &threads_[warp * kWarpSize];
  for (unsigned others = waiting_lanes_[warp] & request.mask; others != 0; others &= others - 1) {
    const Thread& other = lanes[std::countr_zero(others)];
    if (other.request.mask == request.mask && other.request.operation == request.operation) continue;
    if ((other.request.mask >> lane & 1u) == 0) continue;  // it waits for others, and may still come
    raise(FaultKind::mask, site_id(self.where),
          fmt::format("lane {} calls {} with mask {:#010x}, lane {} of it waits in {} with mask {:#010x} at {}:{}",
                      lane, name_of(request.operation), request.mask, other.lane(), name_of(other.request.operation),
                      other.request.mask, other.where.file_name(), other.where.line()),
          site_id(other.where));
  }
}

bool Engine::meeting_is_complete(const Thread& arriving) const {
  const unsigned warp = arriving.warp(), mask = arriving.request.mask;
  const unsigned expected = mask & existing_lanes(warp, count_);
  if ((waiting_lanes_[warp] & expected) != expected) return false;
  if (!forming_[warp].mixed) return true;
  // A lane of the mask may wait for others with a mask of its own: it has yet to come.
  for (unsigned members = expected; members != 0; members &= members - 1) {
    const WarpRequest& other = threads_[warp * kWarpSize + static_cast<unsigned>(std::countr_zero(members))].request;
    if (other.mask != mask || other.operation != arriving.request.operation) return false;
  }
  return true;
}

void Engine::meet(WarpOperation operation, unsigned mask, void* slot, Finish finish,
                  const std::source_location& where) {
  Thread& self = *current_;
  const unsigned warp = self.warp(), lane = self.lane();
  self.where = where;
  self.request = {operation, mask, slot};
  if ((mask >> lane & 1u) == 0) {
    raise(FaultKind::mask, site_id(where),
          fmt::format("lane {} calls {} with mask {:#010x}, which leaves it out", lane, name_of(operation), mask));
  }
  if ((mask & exited_lanes_[warp]) != 0) {
    raise(FaultKind::mask, site_id(where),
          fmt::format("the mask {:#010x} of {} names lanes {:#010x}, which have left the kernel", mask,
                      name_of(operation), mask & exited_lanes_[warp]));
  }
  join_meeting(self);
  waiting_lanes_[warp] |= 1u << lane;
  self.state = ThreadState::at_warp;
  if (!meeting_is_complete(self)) {
    ready_.erase(self.position);
    switch_to_next(self.position);
    self.state = ThreadState::ready;
    return;
  }
  Thread* const lanes = &threads_[warp * kWarpSize];
  const unsigned present = mask & existing_lanes(warp, count_);
  std::array<void*, kWarpSize> slots{};
  for (unsigned members = present; members != 0; members &= members - 1) {
    const auto member = static_cast<unsigned>(std::countr_zero(members));
    slots[member] = lanes[member].request.slot;
    ready_.insert(lanes[member].position);
  }
  if (operation == WarpOperation::sync) order_warp(slots, self);
  finish(slots, present);
  waiting_lanes_[warp] &= ~present;
  self.state = ThreadState::ready;
  refresh_now();
}

}  // namespace tandem::simulator
