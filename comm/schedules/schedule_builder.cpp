// Two steps for each message.
#include "tandem/comm/schedules/schedule_builder.h"

#include "tandem/core/error.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tandem::comm {

ScheduleBuilder::ScheduleBuilder(std::string name, int ranks, int chunks) {
  require(ranks >= 1, "schedule {}: {} ranks; a group has 1 or more", name, ranks);
  schedule_ = {std::move(name), ranks, chunks, std::vector<std::vector<Step>>(static_cast<std::size_t>(ranks))};
}

void ScheduleBuilder::copy(int round, int from, int to, int chunk) {
  add(round, from, to, {round, Action::receive, from, chunk});
}

void ScheduleBuilder::combine(int round, int from, int to, int chunk, bool sender_is_left) {
  add(round, from, to, {round, Action::reduce, from, chunk, sender_is_left});
}

void ScheduleBuilder::add(int round, int from, int to, const Step& received) {
  schedule_.of_rank[static_cast<std::size_t>(from)].push_back({round, Action::send, to, received.chunk});
  schedule_.of_rank[static_cast<std::size_t>(to)].push_back(received);
}

Schedule ScheduleBuilder::take() {
  sort_steps();
  mark_complete();
  return std::move(schedule_);
}

void ScheduleBuilder::sort_steps() {
  for (auto& steps : schedule_.of_rank) {
    std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
      return std::pair(a.round, a.action != Action::send) < std::pair(b.round, b.action != Action::send);
    });
  }
}

void ScheduleBuilder::mark_complete() {
  // How many ranks' elements are in each chunk of each rank, round by round. Nobody's are there twice (check_schedule).
  const auto ranks = static_cast<std::size_t>(schedule_.ranks), chunks = static_cast<std::size_t>(schedule_.chunks);
  std::vector<int> now(ranks * chunks, 1);
  const auto place = [&](std::size_t rank, int chunk) { return rank * chunks + static_cast<std::size_t>(chunk); };
  struct Arrival {
    Step* step;
    int* own;
    int received;
  };
  std::vector<Arrival> arrivals;
  std::vector<std::size_t> next(ranks, 0);
  for (int round = 0, rounds = rounds_of(schedule_); round < rounds; ++round) {
    arrivals.clear();  // what is sent in a round is what was there before it
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      auto& steps = schedule_.of_rank[rank];
      for (; next[rank] < steps.size() && steps[next[rank]].round == round; ++next[rank]) {
        Step& step = steps[next[rank]];
        if (step.action == Action::send) continue;
        const int received = now[place(static_cast<std::size_t>(step.peer), step.chunk)];
        arrivals.push_back({&step, &now[place(rank, step.chunk)], received});
      }
    }
    for (const auto& [step, own, received] : arrivals) {
      *own = step->action == Action::reduce ? *own + received : received;
      step->completes = step->action == Action::reduce && *own == schedule_.ranks;
    }
  }
}

}  // namespace tandem::comm
