// The ring's schedule follows from rank and step alone.
#include "tandem/comm/schedules/ring_schedule.h"

#include "tandem/core/error.h"

#include <algorithm>

namespace tandem::comm {

std::vector<RingStep> ring_schedule(int ranks, int rank) {
  require(ranks >= 1 && rank >= 0 && rank < ranks, "ring: rank {} of {} does not exist", rank, ranks);
  const auto wrap = [ranks](int value) { return ((value % ranks) + ranks) % ranks; };
  std::vector<RingStep> steps;
  for (const bool reduce : {true, false}) {
    const int first = reduce ? rank : rank + 1;  // after reduce-scatter, rank r holds the finished chunk r + 1
    for (int step = 0; step < ranks - 1; ++step) {
      steps.push_back({wrap(rank + 1), wrap(first - step), wrap(rank - 1), wrap(first - step - 1), reduce});
    }
  }
  return steps;
}

ElementRange chunk_range(std::int64_t total, int chunks, int chunk) {
  const std::int64_t base = total / chunks, larger = total % chunks;
  return {chunk * base + std::min<std::int64_t>(chunk, larger), base + (chunk < larger ? 1 : 0)};
}

std::int64_t ring_elements_sent(std::int64_t total, int ranks, int rank) {
  std::int64_t sent = 0;
  for (const RingStep& step : ring_schedule(ranks, rank)) sent += chunk_range(total, ranks, step.send_chunk).count;
  return sent;
}

std::string ring_schedule_table(int ranks) {
  std::vector<std::vector<RingStep>> schedules;
  for (int rank = 0; rank < ranks; ++rank) schedules.push_back(ring_schedule(ranks, rank));
  std::string table;
  for (std::size_t step = 0; step < schedules.front().size(); ++step) {
    table += fmt::format("{:3} {}", step + 1, schedules.front()[step].reduce ? "reduce" : "copy  ");
    for (int rank = 0; rank < ranks; ++rank) {
      const RingStep& entry = schedules[static_cast<std::size_t>(rank)][step];
      table += fmt::format("  {}>{} c{}", rank, entry.send_to, entry.send_chunk);
    }
    table += '\n';
  }
  return table;
}

}  // namespace tandem::comm
