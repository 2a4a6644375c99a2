// The state of each mbarrier of the running block.
#include "tandem/simulator/mbarrier.h"

#include "tandem/simulator/engine.h"
#include "tandem/simulator/shadow.h"
#include "tandem/simulator/shared_memory.h"

#include <fmt/format.h>

#include <deque>
#include <utility>

namespace tandem::simulator {

namespace {

struct Mbarrier {
  const std::uint64_t* at = nullptr;
  unsigned expected = 0, missing = 0;  // arrivals
  unsigned phase = 0;
  std::int64_t announced = 0, under_way = 0;  // bytes of this phase
  ThreadClock gathered, ended;                // by arrivals of all phases, and of those that have ended
  std::vector<Arrival> arrivals;
  std::vector<unsigned> asleep;
  SiteId last_copy = 0;
};

std::deque<Mbarrier> barriers;

/// Everybody has come, and what was announced is on its way: who waits lets it land.
bool is_ripe(const Mbarrier& barrier) { return barrier.missing == 0 && barrier.announced == barrier.under_way; }

void check_address(const std::uint64_t* at, SiteId site) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  if (!is_shared_address(at) || address % 8 != 0)
    engine().raise(FaultKind::misaligned, site,
                   fmt::format("an mbarrier at {:#x}; it takes 8 bytes of shared memory, aligned", address));
}

Mbarrier& find(const std::uint64_t* at, SiteId site) {
  check_address(at, site);
  if constexpr (kChecksMemory) shared_shadow().access(reinterpret_cast<std::uintptr_t>(at), 8, Access::atomic, site);
  for (Mbarrier& barrier : barriers)
    if (barrier.at == at) return barrier;
  engine().raise(FaultKind::uninitialised, site, "an mbarrier that was not initialised");
}

void end_phase_if_ripe(Mbarrier& barrier) {
  Engine& e = engine();
  if (!is_ripe(barrier)) return;
  if (barrier.announced == 0) {
    barrier.missing = barrier.expected;
    ++barrier.phase;
    const Engine::Aside aside(e);
    barrier.ended = barrier.gathered;
  }
  for (const unsigned thread : barrier.asleep) e.wake(thread);
  barrier.asleep.clear();
}

void let_copies_land(Mbarrier& barrier) {
  const Engine::Aside aside(engine());
  for (const Arrival& arrival : barrier.arrivals) arrival.land();
  barrier.arrivals.clear();
  barrier.announced = barrier.under_way = 0;
}

}  // namespace

void init_mbarrier(std::uint64_t* at, unsigned arrivals, std::source_location where) {
  const SiteId site = site_id(where);
  check_address(at, site);
  if (arrivals == 0) engine().raise(FaultKind::barrier, site, "an mbarrier for no arrivals");
  if constexpr (kChecksMemory) shared_shadow().access(reinterpret_cast<std::uintptr_t>(at), 8, Access::write, site);
  const Engine::Aside aside(engine());
  std::erase_if(barriers, [&](const Mbarrier& barrier) { return barrier.at == at; });
  Mbarrier& barrier = barriers.emplace_back();
  barrier.at = at;
  barrier.expected = barrier.missing = arrivals;
}

void arrive_and_expect(std::uint64_t* at, std::uint32_t bytes, std::source_location where) {
  Engine& e = engine();
  Mbarrier& barrier = find(at, site_id(where));
  e.release(barrier.gathered);
  if (barrier.missing == 0 && is_ripe(barrier)) {  // a phase that nobody waits for
    let_copies_land(barrier);
    end_phase_if_ripe(barrier);
  }
  if (barrier.missing == 0)
    e.raise(FaultKind::barrier, site_id(where),
            fmt::format("more than {} arrivals at an mbarrier in one phase", barrier.expected));
  barrier.announced += bytes;
  --barrier.missing;
  end_phase_if_ripe(barrier);
}

void arrive_at_mbarrier(std::uint64_t* at, std::source_location where) { arrive_and_expect(at, 0, where); }

void bring_to_mbarrier(std::uint64_t* at, Arrival arrival, std::source_location where) {
  Engine& e = engine();
  Mbarrier& barrier = find(at, site_id(where));
  e.release(barrier.gathered);
  {
    const Engine::Aside aside(e);
    barrier.under_way += arrival.bytes;
    barrier.last_copy = site_id(where);
    barrier.arrivals.push_back(std::move(arrival));
  }
  end_phase_if_ripe(barrier);
}

void wait_at_mbarrier(std::uint64_t* at, unsigned parity, std::source_location where) {
  Engine& e = engine();
  Mbarrier& barrier = find(at, site_id(where));
  while (barrier.phase % 2 == parity) {
    if (is_ripe(barrier)) {
      let_copies_land(barrier);
      end_phase_if_ripe(barrier);
      continue;
    }
    if (barrier.missing == 0 && barrier.under_way > barrier.announced)
      e.raise(
          FaultKind::async_copy, barrier.last_copy,
          fmt::format("copies bring {} bytes to an mbarrier, {} were announced", barrier.under_way, barrier.announced));
    {
      const Engine::Aside aside(e);
      barrier.asleep.push_back(e.current().linear);
    }
    e.sleep("an mbarrier", where);
  }
  e.acquire(barrier.ended);
}

void clear_mbarriers() { barriers.clear(); }

void forget_clocks_of_mbarriers() {
  for (Mbarrier& barrier : barriers) {
    barrier.gathered.clear();
    barrier.ended.clear();
  }
}

void check_mbarriers_at_end() {
  for (const Mbarrier& barrier : barriers) {
    if (barrier.arrivals.empty()) continue;
    engine().raise(FaultKind::async_copy, barrier.last_copy,
                   fmt::format("the block ends, and nobody has waited for {} copies of tiles to shared memory",
                               barrier.arrivals.size()));
  }
}

}  // namespace tandem::simulator
