// How well a kernel's memory requests fit the hardware: the counters that a profiler shows, exact and without a GPU.
//
// A warp's access is one request. Global memory moves in sectors of 32 bytes; shared memory has 32 banks of 4 bytes,
// and lanes that want different words of one bank wait for each other: each turn is a wavefront. (CUDA C++ Best
// Practices Guide, "Coalesced Access to Global Memory" and "Shared Memory and Memory Banks".)
#pragma once

#include "tandem/simulator/site.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem::simulator {

/// One line of source of one kernel.
struct LintEntry {
  std::string kernel;
  Site site;
  bool shared = false;
  bool writes = false;  // stores and atomics, else loads
  std::uint64_t requests = 0;
  std::uint64_t moved = 0;  // sectors, or wavefronts
  std::uint64_t ideal = 0;  // the fewest that the requested bytes could have taken

  double ratio() const { return ideal == 0 ? 1.0 : static_cast<double>(moved) / static_cast<double>(ideal); }
};

/// What was counted since the start or reset_lint(), while settings().lint was set. Race builds only: others count
/// nothing.
std::vector<LintEntry> lint_entries();
/// Each kernel that was launched meanwhile, and how often.
std::vector<std::pair<std::string, std::uint64_t>> lint_launches();
void reset_lint();

// Called by the engine.
namespace detail {
extern bool lint_on;
}
inline bool lint_is_on() { return detail::lint_on; }
void start_lint(const void* kernel);
/// With 0 bytes, the lane takes no part in the request that others make here.
void count_request(std::uintptr_t address, std::size_t bytes, bool shared, bool writes, SiteId where);
/// One request of up to 32 addresses that no warp makes: of a tensor core or a copy of a tile.
void count_request_of(const std::uintptr_t* addresses, unsigned count, std::size_t bytes, bool shared, bool writes,
                      SiteId where);
void finish_block_of_lint();
void finish_lint();

}  // namespace tandem::simulator
