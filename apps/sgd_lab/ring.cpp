#include "apps/sgd_lab/ring.h"

#include "tandem/comm/schedules/all_reduce_algorithms.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tandem::sgd_lab {

std::vector<Round> follow(const comm::Schedule& schedule, Values values) {
  std::map<int, std::vector<Message>> sent;
  for (int rank = 0; rank < schedule.ranks; ++rank)
    for (const comm::Step& step : schedule.of_rank[static_cast<std::size_t>(rank)])
      if (step.action != comm::Action::send)
        sent[step.round].push_back({step.peer, rank, step.chunk, 0, step.action == comm::Action::reduce});
  std::vector<Round> rounds;
  for (auto& [number, messages] : sent) {
    const auto at = [&](int rank, int chunk) -> std::int64_t& {
      return values[static_cast<std::size_t>(rank)][static_cast<std::size_t>(chunk)];
    };
    std::ranges::sort(messages, {}, &Message::from);
    for (Message& message : messages) message.value = at(message.from, message.chunk);
    for (const Message& message : messages) {
      std::int64_t& held = at(message.to, message.chunk);
      held = message.is_added ? held + message.value : message.value;
    }
    rounds.push_back({std::move(messages), values});
  }
  return rounds;
}

RingLesson make_ring_lesson(int ranks, std::uint64_t seed) {
  const std::vector<int> one_host(static_cast<std::size_t>(ranks), 0);
  RingLesson lesson{comm::all_reduce_algorithm("ring").make(one_host), {}, {}, {}};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& row = lesson.before.emplace_back();
    for (int chunk = 0; chunk < lesson.schedule.chunks; ++chunk)
      row.push_back(1 + static_cast<std::int64_t>((seed % 9 + static_cast<std::uint64_t>(4 * rank + 7 * chunk)) % 9));
  }
  lesson.rounds = follow(lesson.schedule, lesson.before);
  lesson.parts.emplace_back(static_cast<std::size_t>(ranks),
                            std::vector<std::int64_t>(static_cast<std::size_t>(lesson.schedule.chunks), 1));
  for (const Round& round : follow(lesson.schedule, lesson.parts.front())) lesson.parts.push_back(round.after);
  return lesson;
}

}  // namespace tandem::sgd_lab
