// Meetings of the lanes of a warp.
#include "tandem/simulator/engine.h"

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
    case WarpOperation::wait_for_products:
      return "wgmma.wait_group";
  }
  return "a warp operation";
}

void Engine::order_warp(const WarpSlots& slots, Thread& any) {
  Thread* const lanes = &threads_[any.warp() * kWarpSize];
  std::array<std::uint16_t, kWarpSize> merged{};
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (slots[lane] == nullptr) continue;
    for (unsigned i = 0; i < kWarpSize; ++i) merged[i] = std::max(merged[i], lanes[lane].known[i]);
  }
  bool full = false;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (slots[lane] == nullptr) continue;
    merged[lane] = ++lanes[lane].epoch;
    full |= merged[lane] >= Stamp::kLastWarpEpoch;
  }
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (slots[lane] != nullptr) lanes[lane].known = merged;
  }
  order_clocks_of_warp(slots, any.warp());
  order_block_clocks_of_warp(slots, any.warp());
  if (full) start_epochs_again();
}

void Engine::complete_meetings_without(const Thread& exiting) {
  Warp& warp = warps_[exiting.warp()];
  Thread* const lanes = &threads_[exiting.warp() * kWarpSize];
  for (unsigned others = warp.waiting; others != 0; others &= (others - 1) & warp.waiting) {
    Thread& other = lanes[std::countr_zero(others)];
    const WarpRequest& request = other.request;
    if ((request.mask >> exiting.lane() & 1u) == 0) continue;
    if (needs_all_lanes(request.operation))
      raise(FaultKind::mask, site_id(other.where),
            fmt::format("lane {} left the kernel; lane {} waits for it in {} with mask {:#010x}", exiting.lane(),
                        other.lane(), name_of(request.operation), request.mask));
    const unsigned present = request.mask & ~warp.absent;
    if ((warp.waiting & present) != present || (warp.mixed && !mixed_meeting_is_complete(other))) continue;
    complete_meeting(other, request.finish, present);
  }
}

void Engine::check_mask(const Thread& self) {
  const unsigned mask = self.request.mask, absent = warps_[self.warp()].absent;
  if ((mask >> self.lane() & 1u) == 0) {
    raise(FaultKind::mask, site_id(self.where),
          fmt::format("lane {} calls {} with mask {:#010x}, which leaves it out", self.lane(),
                      name_of(self.request.operation), mask));
  }
  raise(
      FaultKind::mask, site_id(self.where),
      fmt::format("{} needs all lanes of a warp; lanes {:#010x} have left the kernel, or the block does not have them",
                  name_of(self.request.operation), mask & absent));
}

void Engine::join_mixed_meeting(const Thread& self) {
  const WarpRequest& request = self.request;
  const Thread* const lanes = &threads_[self.warp() * kWarpSize];
  for (unsigned others = warps_[self.warp()].waiting & request.mask; others != 0; others &= others - 1) {
    const Thread& other = lanes[std::countr_zero(others)];
    if (other.request.mask == request.mask && other.request.operation == request.operation) continue;
    if ((other.request.mask >> self.lane() & 1u) == 0) continue;  // it waits for others, and may still come
    raise(
        FaultKind::mask, site_id(self.where),
        fmt::format("lane {} calls {} with mask {:#010x}, lane {} of it waits in {} with mask {:#010x} at {}:{}",
                    self.lane(), name_of(request.operation), request.mask, other.lane(),
                    name_of(other.request.operation), other.request.mask, other.where.file_name(), other.where.line()),
        site_id(other.where));
  }
}

bool Engine::mixed_meeting_is_complete(const Thread& arriving) const {
  // A lane of the mask may wait for others with a mask of its own: it has yet to come.
  const Thread* const lanes = &threads_[arriving.warp() * kWarpSize];
  for (unsigned members = arriving.request.mask & ~warps_[arriving.warp()].absent; members != 0;
       members &= members - 1) {
    const WarpRequest& other = lanes[std::countr_zero(members)].request;
    if (other.mask != arriving.request.mask || other.operation != arriving.request.operation) return false;
  }
  return true;
}

void Engine::complete_meeting(Thread& self, Finish finish, unsigned present) {
  Thread* const lanes = &threads_[self.warp() * kWarpSize];
  WarpSlots slots{};
  for (unsigned members = present; members != 0; members &= members - 1) {
    const auto member = static_cast<unsigned>(std::countr_zero(members));
    slots[member] = lanes[member].request.slot;
    ready_.insert(lanes[member].position);
  }
  if (self.request.operation == WarpOperation::sync) {
    order_warp(slots, self);
    refresh_now();
  }
  finish(slots, present);
  warps_[self.warp()].waiting &= ~present;
}

}  // namespace tandem::simulator
