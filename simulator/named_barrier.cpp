// Who has come to which named barrier.
#include "tandem/simulator/named_barrier.h"

#include "tandem/simulator/engine.h"

#include <fmt/format.h>

#include <bit>

namespace tandem::simulator {

namespace {

constexpr unsigned kBarriers = 16;

struct NamedBarrier {
  unsigned expected = 0, round = 0;
  std::array<unsigned, kMaxBlockThreads / kWarpSize> arrived{};  // lanes, by warp
  std::array<ThreadClock, 2> clocks;  // of this round and the last, which some have yet to leave
  std::vector<unsigned> asleep;
};

std::array<NamedBarrier, kBarriers> barriers;
bool any_barrier = false;  // since clear_named_barriers()

bool is_complete(const NamedBarrier& barrier) {
  unsigned threads = 0;
  for (unsigned warp = 0; warp < barrier.arrived.size(); ++warp) {
    const unsigned lanes = barrier.arrived[warp];
    if (lanes == 0) continue;
    const unsigned all = lanes | engine().absent_lanes(warp);
    threads += static_cast<unsigned>(std::popcount(all == ~0u ? all : lanes));
  }
  return threads >= barrier.expected;
}

void end_round(NamedBarrier& barrier) {
  ++barrier.round;
  barrier.arrived = {};
  for (const unsigned thread : barrier.asleep) engine().wake(thread);
  barrier.asleep.clear();
}

}  // namespace

void sync_named(unsigned id, unsigned threads, std::source_location where) {
  Engine& e = engine();
  if (id == 0 || id >= kBarriers || threads == 0 || threads % kWarpSize != 0)
    e.raise(FaultKind::barrier, site_id(where),
            fmt::format("barrier {} of {} threads; there are barriers 1 to 15, for multiples of 32", id, threads));
  any_barrier = true;
  NamedBarrier& barrier = barriers[id];
  if (barrier.asleep.empty()) {
    barrier.expected = threads;
    barrier.clocks[barrier.round % 2].clear();
  } else if (barrier.expected != threads) {
    e.raise(FaultKind::barrier, site_id(where),
            fmt::format("barrier {} of {} threads, where others wait for {}", id, threads, barrier.expected));
  }
  const unsigned round = barrier.round;
  e.release(barrier.clocks[round % 2]);
  barrier.arrived[e.current().warp()] |= 1u << e.current().lane();
  if (is_complete(barrier)) {
    end_round(barrier);
  } else {
    {
      const Engine::Aside aside(e);
      barrier.asleep.push_back(e.current().linear);
    }
    e.sleep("a named barrier", where);
  }
  e.acquire(barrier.clocks[round % 2]);
}

void clear_named_barriers() {
  if (!any_barrier) return;
  barriers = {};
  any_barrier = false;
}

void leave_named_barriers(const Thread& exiting) {
  if (!any_barrier) return;
  for (NamedBarrier& barrier : barriers)
    if (barrier.arrived[exiting.warp()] != 0 && is_complete(barrier)) end_round(barrier);
}

void forget_clocks_of_named_barriers() {
  if (!any_barrier) return;
  for (NamedBarrier& barrier : barriers)
    for (ThreadClock& clock : barrier.clocks) clock.clear();
}

}  // namespace tandem::simulator
