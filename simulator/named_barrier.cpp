// Who has come to which named barrier.
#include "simulator/named_barrier.h"

#include "simulator/engine.h"

#include <fmt/format.h>

namespace tandem::simulator {

namespace {

constexpr unsigned kBarriers = 16;

struct NamedBarrier {
  unsigned expected = 0, arrived = 0, round = 0;
  std::array<ThreadClock, 2> clocks;  // of this round and the last, which some have yet to leave
  std::vector<unsigned> asleep;
};

std::array<NamedBarrier, kBarriers> barriers;
bool any_barrier = false;  // since clear_named_barriers()

}  // namespace

void sync_named(unsigned id, unsigned threads, std::source_location where) {
  Engine& e = engine();
  if (id == 0 || id >= kBarriers || threads == 0 || threads % kWarpSize != 0)
    e.raise(FaultKind::barrier, site_id(where),
            fmt::format("barrier {} of {} threads; there are barriers 1 to 15, for multiples of 32", id, threads));
  any_barrier = true;
  NamedBarrier& barrier = barriers[id];
  if (barrier.arrived == 0) {
    barrier.expected = threads;
    barrier.clocks[barrier.round % 2].clear();
  } else if (barrier.expected != threads) {
    e.raise(FaultKind::barrier, site_id(where),
            fmt::format("barrier {} of {} threads, where others wait for {}", id, threads, barrier.expected));
  }
  const unsigned round = barrier.round;
  e.release(barrier.clocks[round % 2]);
  if (++barrier.arrived < threads) {
    {
      const Engine::Aside aside(e);
      barrier.asleep.push_back(e.current().linear);
    }
    e.sleep("a named barrier", where);
  } else {
    barrier.arrived = 0;
    ++barrier.round;
    for (const unsigned thread : barrier.asleep) e.wake(thread);
    barrier.asleep.clear();
  }
  e.acquire(barrier.clocks[round % 2]);
}

void clear_named_barriers() {
  if (!any_barrier) return;
  barriers = {};
  any_barrier = false;
}

}  // namespace tandem::simulator
