// Timing of work that takes turns with other work.
#pragma once

#include "tandem/core/device.h"
#include "tandem/core/tensor.h"

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace tandem::conv_bench {

/// Whether the work finds its tensors where the run before has left them, or the caches full of something else.
enum class Cache : std::uint8_t { hot, cold };

std::string_view name_of(Cache cache);
/// "hot" or "cold"; anything else throws.
Cache parse_cache(std::string_view text);

struct Protocol {
  int warmup = 3;  // runs before the first group
  int groups = 9;  // measured, taking turns
  int launches =
      0;  // runs in a group; 0: as many as group_seconds hold, on a GPU 10 to 50, with a cold cache at most 10
  double group_seconds = 0.02;
};

/// Runs one kind of work in groups. On a real GPU a group is one CUDA graph between two events; elsewhere, and for work
/// that cannot be recorded, it is a loop between two events or, on the CPU, two readings of the clock.
class GroupTimer {
 public:
  /// Warms up, and records.
  GroupTimer(Device device, std::function<void()> work, bool can_be_recorded, Cache cache, const Protocol& protocol);
  ~GroupTimer();
  GroupTimer(GroupTimer&&) noexcept;

  /// Seconds per run of one group. With a cold cache each run comes after writing a large buffer, which is not counted.
  double run_group();

  int launches() const;
  bool is_recorded() const;

 private:
  struct Groups;
  std::unique_ptr<Groups> groups_;
};

/// For each of `timers`, seconds per run of each group; the groups take turns, and who begins changes from turn to
/// turn.
std::vector<std::vector<double>> time_interleaved(std::vector<GroupTimer>& timers, int groups);

}  // namespace tandem::conv_bench
