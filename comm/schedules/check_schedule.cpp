// Symbols are expressions: rank 2's own elements, or the combination of two expressions, in that order.
#include "tandem/comm/schedules/check_schedule.h"

#include "tandem/core/error.h"

#include <fmt/ranges.h>

#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace tandem::comm {

namespace {

/// All expressions that came up; equal ones have one number.
class Expressions {
 public:
  int own(int rank) { return number({-1, rank}, {rank}); }

  /// Nothing, where a rank's elements would be in it twice.
  std::optional<int> combined(int left, int right) {
    std::set<int> ranks = ranks_of(left);
    for (const int rank : ranks_of(right)) {
      if (!ranks.insert(rank).second) return std::nullopt;
    }
    return number({left, right}, ranks);
  }

  const std::set<int>& ranks_of(int expression) const { return ranks_[static_cast<std::size_t>(expression)]; }

 private:
  int number(std::pair<int, int> parts, std::set<int> ranks) {
    const auto [place, is_new] = numbers_.try_emplace(parts, static_cast<int>(ranks_.size()));
    if (is_new) ranks_.push_back(std::move(ranks));
    return place->second;
  }

  std::map<std::pair<int, int>, int> numbers_;
  std::vector<std::set<int>> ranks_;
};

struct Message {
  int chunk;
  int expression;
};

/// All ranks at some moment.
class Symbols {
 public:
  Symbols(const Schedule& schedule, const Goal& goal) : schedule_(schedule) {
    require(schedule.ranks == goal.ranks && schedule.chunks == goal.chunks &&
                schedule.of_rank.size() == static_cast<std::size_t>(goal.ranks),
            "schedule {}: it is for {} ranks and {} chunks, the goal for {} and {}", schedule.name, schedule.ranks,
            schedule.chunks, goal.ranks, goal.chunks);
    next_.assign(schedule.of_rank.size(), 0);
    for (int rank = 0; rank < goal.ranks; ++rank) {
      for (int chunk = 0; chunk < goal.chunks; ++chunk) {
        if (goal.has(rank, chunk)) values_[{rank, chunk}] = expressions_.own(rank);
      }
    }
  }

  /// Takes steps until none can be taken.
  void run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int rank = 0; rank < schedule_.ranks; ++rank) {
        while (take_step(rank)) moved = true;
      }
    }
    check_end();
  }

  void check(const Goal& goal) const {
    for (int chunk = 0; chunk < goal.chunks; ++chunk) {
      std::map<std::set<int>, std::pair<int, int>> first;  // rank and expression that had this set first
      for (int rank = 0; rank < goal.ranks; ++rank) {
        const std::set<int> wanted = goal.wants(rank, chunk);
        if (wanted.empty()) continue;
        const auto value = values_.find({rank, chunk});
        require(value != values_.end() && expressions_.ranks_of(value->second) == wanted,
                "schedule {} of {} ranks: rank {} ends with chunk {} of ranks {{{}}}, and wants {{{}}}", schedule_.name,
                schedule_.ranks, rank, chunk, value == values_.end() ? "" : list(expressions_.ranks_of(value->second)),
                list(wanted));
        const auto [place, is_new] = first.try_emplace(wanted, rank, value->second);
        require(is_new || place->second.second == value->second,
                "schedule {} of {} ranks: ranks {} and {} combine chunk {} in different orders", schedule_.name,
                schedule_.ranks, place->second.first, rank, chunk);
      }
    }
  }

 private:
  static std::string list(const std::set<int>& ranks) { return fmt::format("{}", fmt::join(ranks, ", ")); }

  std::string place_of(int rank, const Step& step) const {
    return fmt::format("schedule {} of {} ranks: rank {}, round {}, chunk {}", schedule_.name, schedule_.ranks, rank,
                       step.round + 1, step.chunk);
  }

  bool take_step(int rank) {
    const auto& steps = schedule_.of_rank[static_cast<std::size_t>(rank)];
    std::size_t& next = next_[static_cast<std::size_t>(rank)];
    if (next == steps.size()) return false;
    const Step& step = steps[next];
    require(step.peer >= 0 && step.peer < schedule_.ranks && step.peer != rank && step.chunk >= 0 &&
                step.chunk < schedule_.chunks,
            "{}: the peer {} or the chunk is out of range", place_of(rank, step), step.peer);
    if (step.action == Action::send) {
      const auto value = values_.find({rank, step.chunk});
      require(value != values_.end(), "{}: sends what it does not have", place_of(rank, step));
      messages_[{rank, step.peer}].push_back({step.chunk, value->second});
    } else {
      auto& channel = messages_[{step.peer, rank}];
      if (channel.empty()) return false;
      const Message message = channel.front();
      channel.pop_front();
      require(message.chunk == step.chunk, "{}: receives chunk {} from rank {}", place_of(rank, step), message.chunk,
              step.peer);
      take_message(rank, step, message);
    }
    ++next;
    return true;
  }

  void take_message(int rank, const Step& step, const Message& message) {
    const std::pair key{rank, step.chunk};
    if (step.action == Action::receive) {
      values_[key] = message.expression;
      return;
    }
    const auto own = values_.find(key);
    require(own != values_.end(), "{}: combines with what it does not have", place_of(rank, step));
    const auto sum = step.peer_is_left ? expressions_.combined(message.expression, own->second)
                                       : expressions_.combined(own->second, message.expression);
    require(sum.has_value(), "{}: would have elements of a rank twice", place_of(rank, step));
    own->second = *sum;
  }

  void check_end() const {
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      const auto& steps = schedule_.of_rank[static_cast<std::size_t>(rank)];
      const std::size_t next = next_[static_cast<std::size_t>(rank)];
      if (next == steps.size()) continue;
      fail("{}: waits for ever for rank {}", place_of(rank, steps[next]), steps[next].peer);
    }
    for (const auto& [ranks, channel] : messages_) {
      require(channel.empty(), "schedule {} of {} ranks: rank {} sends chunk {} to rank {}, which does not receive it",
              schedule_.name, schedule_.ranks, ranks.first, channel.empty() ? 0 : channel.front().chunk, ranks.second);
    }
  }

  const Schedule& schedule_;
  Expressions expressions_;
  std::vector<std::size_t> next_;                                // step of each rank
  std::map<std::pair<int, int>, int> values_;                    // by rank and chunk
  std::map<std::pair<int, int>, std::deque<Message>> messages_;  // by sender and receiver
};

std::set<int> all_of(int ranks) {
  std::set<int> result;
  for (int rank = 0; rank < ranks; ++rank) result.insert(rank);
  return result;
}

bool always(int, int) { return true; }

}  // namespace

Goal all_reduce_goal(int ranks, int chunks) {
  return {ranks, chunks, always, [=](int, int) { return all_of(ranks); }};
}

Goal reduce_goal(int ranks, int chunks, int root) {
  return {ranks, chunks, always, [=](int rank, int) { return rank == root ? all_of(ranks) : std::set<int>(); }};
}

Goal reduce_scatter_goal(int ranks) {
  return {ranks, ranks, always, [=](int rank, int chunk) { return rank == chunk ? all_of(ranks) : std::set<int>(); }};
}

Goal broadcast_goal(int ranks, int chunks, int root) {
  return {ranks, chunks, [=](int rank, int) { return rank == root; }, [=](int, int) { return std::set{root}; }};
}

Goal all_gather_goal(int ranks) {
  return {ranks, ranks, [](int rank, int chunk) { return rank == chunk; },
          [](int, int chunk) { return std::set{chunk}; }};
}

Goal gather_goal(int ranks, int root) {
  return {ranks, ranks, [](int rank, int chunk) { return rank == chunk; },
          [=](int rank, int chunk) { return rank == root ? std::set{chunk} : std::set<int>(); }};
}

Goal scatter_goal(int ranks, int root) {
  return {ranks, ranks, [=](int rank, int) { return rank == root; },
          [=](int rank, int chunk) { return rank == chunk ? std::set{root} : std::set<int>(); }};
}

Goal all_to_all_goal(int ranks) {
  return {ranks, ranks * ranks, [=](int rank, int chunk) { return chunk / ranks == rank; },
          [=](int rank, int chunk) { return chunk % ranks == rank ? std::set{chunk / ranks} : std::set<int>(); }};
}

void check_schedule(const Schedule& schedule, const Goal& goal) {
  Symbols symbols(schedule, goal);
  symbols.run();
  symbols.check(goal);
}

}  // namespace tandem::comm
