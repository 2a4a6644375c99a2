// What all schedules have in common: sizes of chunks, counts, and the table as text.
#include "tandem/comm/schedules/schedule.h"

#include "tandem/core/error.h"

#include <algorithm>

namespace tandem::comm {

namespace {

/// Whether the receiver of this send adds what it gets.
bool is_added(const Schedule& schedule, int sender, const Step& send) {
  const auto& steps = schedule.of_rank[static_cast<std::size_t>(send.peer)];
  return std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
    return step.action == Action::reduce && step.round == send.round && step.peer == sender && step.chunk == send.chunk;
  });
}

}  // namespace

ElementRange chunk_range(std::int64_t total, int chunks, int chunk) {
  const std::int64_t base = total / chunks, larger = total % chunks;
  return {chunk * base + std::min<std::int64_t>(chunk, larger), base + (chunk < larger ? 1 : 0)};
}

std::int64_t elements_sent(const Schedule& schedule, int rank, std::int64_t total) {
  std::int64_t sent = 0;
  for (const Step& step : schedule.of_rank[static_cast<std::size_t>(rank)]) {
    if (step.action == Action::send) sent += chunk_range(total, schedule.chunks, step.chunk).count;
  }
  return sent;
}

int rounds_of(const Schedule& schedule) {
  int rounds = 0;
  for (const auto& steps : schedule.of_rank) {
    for (const Step& step : steps) rounds = std::max(rounds, step.round + 1);
  }
  return rounds;
}

std::string to_text(const Schedule& schedule) {
  std::string text;
  for (int round = 0, rounds = rounds_of(schedule); round < rounds; ++round) {
    text += fmt::format("{:3}", round + 1);
    for (int rank = 0; rank < schedule.ranks; ++rank) {
      for (const Step& step : schedule.of_rank[static_cast<std::size_t>(rank)]) {
        if (step.action != Action::send || step.round != round) continue;
        text += fmt::format("  {}>{} c{}{}", rank, step.peer, step.chunk, is_added(schedule, rank, step) ? "+" : "");
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace tandem::comm
