// A simulated CUDA thread: where it stands, and what it waits for.
#pragma once

#include "tandem/simulator/fiber.h"
#include "tandem/simulator/include/vector_types.h"
#include "tandem/simulator/site.h"

#include <array>
#include <source_location>

namespace tandem::simulator {

constexpr unsigned kWarpSize = 32;

enum class ThreadState : std::uint8_t { ready, at_barrier, at_warp, asleep, exited };

/// Operations that lanes of a warp carry out together.
enum class WarpOperation : std::uint8_t {
  sync,
  shuffle,
  vote,
  match,
  reduce,
  load_matrix,
  multiply,
  wait_for_products
};

const char* name_of(WarpOperation operation);

/// Matrix operations, whose lanes hold parts of one thing; the others do without lanes that have left the kernel.
constexpr bool needs_all_lanes(WarpOperation operation) { return operation >= WarpOperation::load_matrix; }

/// Called once for all lanes that have come, with what each brought (null for lanes outside of the mask).
using WarpSlots = std::array<void*, kWarpSize>;
using FinishMeeting = void (*)(const WarpSlots& slots, unsigned present);

/// What a lane brought to a meeting of its warp.
struct WarpRequest {
  WarpOperation operation = WarpOperation::sync;
  unsigned mask = 0;
  void* slot = nullptr;
  FinishMeeting finish = nullptr;
};

/// What a switch needs comes first, in one cache line.
struct alignas(64) Thread {
  Fiber fiber;
  std::source_location where;  // of the call that it waits in
  WarpRequest request;
  uint3 index{};
  unsigned linear = 0;         // x fastest, as CUDA counts
  std::uint16_t position = 0;  // its turn in the order that is simulated
  ThreadState state = ThreadState::exited;
  // Order within the warp, as vector clocks: `epoch` counts this lane's warp synchronisations since the block began or
  // Engine::start_epochs_again(); what lane i did before its epoch known[i] happened before what this thread does now.
  std::uint16_t epoch = 0;
  std::array<std::uint16_t, kWarpSize> known{};
  const char* asleep_in = nullptr;  // what it waits for, where its state is asleep
  SiteId polls_at = 0;              // where it last read the same again

  unsigned warp() const { return linear / kWarpSize; }
  unsigned lane() const { return linear % kWarpSize; }
};

}  // namespace tandem::simulator
