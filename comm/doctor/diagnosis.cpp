// Who is to blame.
#include "tandem/comm/doctor/diagnosis.h"

#include "tandem/comm/doctor/collective_diagnosis.h"
#include "tandem/comm/doctor/message_diagnosis.h"
#include "tandem/comm/doctor/rank_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace tandem::comm {

namespace {

OperationView collective_of(const RankView& rank, std::uint64_t number) {
  const auto found = std::ranges::find(rank.collectives, number, &OperationView::number);
  return found == rank.collectives.end() ? OperationView{} : *found;
}

// Ranks whose collectives differ --------------------------------------------------------------------------------------

/// Ranks that have started collective `number`, by what it is on them.
std::vector<std::vector<int>> parties_of(const GroupView& group, std::uint64_t number) {
  std::vector<std::vector<int>> parties;
  for (const RankView& rank : group.ranks) {
    const OperationView own = collective_of(rank, number);
    if (own.number == 0) continue;
    const auto same = std::ranges::find_if(parties, [&](const std::vector<int>& party) {
      return collective_of(rank_of(group, party.front()), number).fits(own);
    });
    if (same == parties.end())
      parties.push_back({rank.rank});
    else
      same->push_back(rank.rank);
  }
  return parties;
}

Diagnosis explain_difference(const GroupView& group, std::uint64_t number, std::vector<std::vector<int>> parties) {
  // What most ranks do is taken for right, and of equals what the lowest rank does.
  const auto most = std::ranges::max_element(parties, {}, &std::vector<int>::size);
  std::rotate(parties.begin(), most, most + 1);
  Diagnosis result{.remedy =
                       "all ranks must call the same collectives in the same order, with the same shapes, dtypes "
                       "and arguments"};
  for (std::size_t i = 1; i < parties.size(); ++i)
    result.blamed.insert(result.blamed.end(), parties[i].begin(), parties[i].end());
  const auto text = [&](const std::vector<int>& party) {
    return describe(collective_of(rank_of(group, party.front()), number));
  };
  const std::string others = fmt::format("{}, and {} {}", text(parties[1]), names_of(parties[0]),
                                         parties[0].size() == 1 ? "calls " : "call ") +
                             text(parties[0]);
  const RankView& first = rank_of(group, parties[1].front());
  result.cause = parties[1].size() == 1 ? fmt::format("{} calls {}", name_of(first), others)
                                        : fmt::format("{} call {}", names_of(parties[1]), others);
  for (std::size_t i = 1; i < parties.size(); ++i)
    for (const int rank : parties[i]) {
      const std::string name = name_of(rank_of(group, rank));
      if (i > 1)
        result.lines.push_back(fmt::format("{} calls {}", name, text(parties[i])));
      else if (rank != first.rank)
        result.lines.push_back(fmt::format("so does {}", name));
    }
  return result;
}

std::optional<Diagnosis> find_difference(const GroupView& group) {
  std::vector<const OperationView*> all;
  for (const RankView& rank : group.ranks)
    for (const OperationView& operation : rank.collectives) all.push_back(&operation);
  std::ranges::sort(all, {}, &OperationView::number);
  const auto differ = [](const OperationView* a, const OperationView* b) {
    return a->number == b->number && !a->fits(*b);
  };
  const auto found = std::ranges::adjacent_find(all, differ);
  if (found == all.end()) return std::nullopt;
  std::vector<std::vector<int>> parties = parties_of(group, (*found)->number);
  if (parties.size() < 2) return std::nullopt;  // one rank's own, of a damaged file
  return explain_difference(group, (*found)->number, std::move(parties));
}

// Ranks that are gone -------------------------------------------------------------------------------------------------

/// Whether `rank` is gone while `waiting` needs something of it.
bool is_missed(const RankView& rank, const RankView& waiting) {
  const OperationView& operation = waiting.waits_for;
  if (!rank.is_known || operation.number == 0) return false;
  if (rank.has_found_fault) return false;  // it ends because of another one
  // One that has left may have sent it before, or have received it.
  if (operation.is_message())
    return operation.peer == rank.rank && rank.end != RankEnd::left && (has_ended(rank) || rank.end != RankEnd::none);
  const bool has_entered = rank.started >= operation.number;
  // One that has left had its part of what it entered.
  if (rank.end == RankEnd::left) return !has_entered;
  if (rank.end == RankEnd::failed && !has_entered) return true;
  return has_ended(rank) && rank.finished < operation.number;
}

/// Ranks besides `gone` that have not entered `operation`, and cannot: stopped ones.
std::vector<int> held_up_too(const GroupView& group, const OperationView& operation, const std::vector<int>& gone) {
  std::vector<int> ranks;
  if (operation.is_message()) return ranks;
  for (const RankView& rank : group.ranks)
    if (rank.is_known && rank.started < operation.number && !can_go_on(rank) && rank.end == RankEnd::none &&
        !has_told(rank) && !is_in(gone, rank.rank))
      ranks.push_back(rank.rank);
  return ranks;
}

Diagnosis explain_end(const GroupView& group, const RankView& waiting, std::vector<int> gone) {
  const RankView& first = rank_of(group, gone.front());
  Diagnosis result{.is_final = has_ended(first) && first.end == RankEnd::none && !first.is_inferred,
                   .blamed = std::move(gone)};
  const OperationView& operation = waiting.waits_for;
  const std::vector<int> others = held_up_too(group, operation, result.blamed);
  result.blamed.insert(result.blamed.end(), others.begin(), others.end());
  const std::string waited_in = describe(operation);
  const bool has_entered = !operation.is_message() && first.started >= operation.number;
  const std::string missed =
      operation.is_message()
          ? fmt::format("{}, and rank {} waits in {}", has_ended(first) ? "has ended" : "is gone", waiting.rank,
                        waited_in)
          : fmt::format("{} {}", has_entered || first.is_inferred ? "did not end" : "has not entered", waited_in);
  result.cause = fmt::format("{} {}; {}", name_of(first), missed, what_it_does(first));
  result.remedy = remedy_for_end(first.end);
  for (std::size_t i = 1; i < result.blamed.size(); ++i) {
    const RankView& other = rank_of(group, result.blamed[i]);
    result.lines.push_back(fmt::format("{}: {}", name_of(other), what_it_does(other)));
  }
  for (std::string& line : waiting_lines(group, result.blamed)) result.lines.push_back(std::move(line));
  return result;
}

std::optional<Diagnosis> find_gone(const GroupView& group) {
  for (const RankView& waiting : group.ranks) {
    if (!waiting.is_waiting || !can_go_on(waiting)) continue;
    std::vector<int> gone;
    for (const RankView& rank : group.ranks)
      if (rank.rank != waiting.rank && is_missed(rank, waiting)) gone.push_back(rank.rank);
    if (!gone.empty()) return explain_end(group, waiting, std::move(gone));
  }
  return std::nullopt;
}

// Waits ---------------------------------------------------------------------------------------------------------------

/// Of a rank that waits for a message: the collective in which the other one waits for it; else what it waits for.
OperationView missed_operation(const GroupView& group, const RankView& waiting) {
  const OperationView& operation = waiting.waits_for;
  if (!operation.is_message() || operation.peer < 0 || static_cast<std::size_t>(operation.peer) >= group.ranks.size())
    return operation;
  const RankView& peer = rank_of(group, operation.peer);
  const bool misses = is_held_up(peer) && !peer.waits_for.is_message() && waiting.started < peer.waits_for.number;
  return misses ? peer.waits_for : operation;
}

/// Whether `rank` waits for something else before it can go on in collective `operation`.
bool waits_before(const RankView& rank, const OperationView& operation) {
  return is_held_up(rank) && (rank.waits_for.is_message() || rank.waits_for.number < operation.number);
}

/// From wait to wait, to those that wait for nobody.
class Following {
 public:
  explicit Following(const GroupView& group) : group_(group), seen_(group.ranks.size(), false) {}

  Diagnosis from(int waiting) {
    seen_[static_cast<std::size_t>(waiting)] = true;
    const RankView& rank = rank_of(group_, waiting);
    if (auto circle = find_circle(group_, waiting)) return *std::move(circle);
    const OperationView operation = missed_operation(group_, rank);
    if (operation.number == 0)
      return {.cause = fmt::format("rank {} waits", waiting), .lines = waiting_lines(group_, {})};
    return operation.is_message() ? of_message(rank) : of_collective(rank, operation);
  }

 private:
  bool is_seen(int rank) const { return seen_[static_cast<std::size_t>(rank)]; }

  Diagnosis of_message(const RankView& rank) {
    Diagnosis result = explain_message(group_, rank);
    const int peer = rank.waits_for.peer;
    const bool is_one = peer >= 0 && static_cast<std::size_t>(peer) < group_.ranks.size();
    if (!is_one || is_answered(group_, rank) || !is_held_up(rank_of(group_, peer))) return result;
    if (is_seen(peer)) {  // by way of a collective
      result.blamed.clear();
      return result;
    }
    Diagnosis further = from(peer);
    return further.blamed.empty() ? result : further;
  }

  Diagnosis of_collective(const RankView& rank, const OperationView& operation) {
    const Missing missing = missing_in(group_, operation);
    std::vector<int> blamed = worst_of(group_, missing.ranks);
    if (blamed.empty() || !can_go_on(rank_of(group_, blamed.front())))
      return explain_collective(group_, rank, operation, missing, blamed);
    for (const int other : blamed)
      if (auto circle = find_circle(group_, other)) return *std::move(circle);
    std::vector<int> busy;
    std::ranges::copy_if(blamed, std::back_inserter(busy), [&](int other) {
      return !rank_of(group_, other).is_waiting && !rank_of(group_, other).waits_elsewhere;
    });
    for (const int other : blamed) {
      if (is_seen(other) || !waits_before(rank_of(group_, other), operation)) continue;
      Diagnosis further = from(other);
      if (further.blamed.empty()) continue;
      // What a rank waits for that cannot go on is worse than one that computes.
      const auto is_worse = [&](int cause) { return !can_go_on(rank_of(group_, cause)) || is_in(busy, cause); };
      if (busy.empty() || std::ranges::all_of(further.blamed, is_worse)) return further;
    }
    return explain_collective(group_, rank, operation, missing, busy.empty() ? blamed : busy);
  }

  const GroupView& group_;
  std::vector<bool> seen_;
};

}  // namespace

int longest_waiting(const GroupView& group) {
  std::vector<const RankView*> waiting;
  for (const RankView& rank : group.ranks)
    if (rank.is_waiting && can_go_on(rank)) waiting.push_back(&rank);
  if (waiting.empty()) return -1;
  std::ranges::stable_sort(waiting, std::greater(), &RankView::waiting_time);
  const auto found =
      std::ranges::find_if(waiting, [&](const RankView* rank) { return !waits_for_long_work(group, rank->rank); });
  return (found == waiting.end() ? waiting.front() : *found)->rank;
}

std::optional<Diagnosis> find_fault(const GroupView& group) {
  if (auto difference = find_difference(group)) return difference;
  return find_gone(group);
}

Diagnosis explain_wait(const GroupView& group, int waiting) {
  if (auto certain = find_fault(group)) return *std::move(certain);
  if (!rank_of(group, waiting).is_waiting)
    if (auto alarm = explain_alarm(group)) return *std::move(alarm);
  Diagnosis result = Following(group).from(waiting);
  for (const RankView& rank : group.ranks) {
    const bool is_stopped = rank.state == ProcessState::stopped || rank.state == ProcessState::held;
    if (rank.is_known && is_stopped && rank.end == RankEnd::none && !is_in(result.blamed, rank.rank))
      result.lines.push_back(fmt::format("{} does not go on either", name_of(rank)));
  }
  return result;
}

std::optional<Diagnosis> explain_alarm(const GroupView& group) {
  const auto has_found = [](const RankView& rank) { return rank.has_found_fault; };
  const auto first = std::ranges::find_if(group.ranks, has_found);
  if (first == group.ranks.end()) return std::nullopt;
  if (std::ranges::any_of(group.ranks, [&](const RankView& rank) { return has_found(rank) && rank.is_waiting; }))
    return std::nullopt;
  if (const int waiting = longest_waiting(group); waiting >= 0) {
    const std::vector<int> blamed = explain_wait(group, waiting).blamed;
    if (!blamed.empty() && std::ranges::none_of(blamed, [&](int rank) { return can_go_on(rank_of(group, rank)); }))
      return std::nullopt;
  }
  return explain_told(group, *first, "");
}

Diagnosis explain_leaving(const GroupView& group, const std::vector<int>& stayed) {
  const RankView& first = rank_of(group, stayed.front());
  Diagnosis result{.blamed = stayed,
                   .cause = fmt::format("{} has not left the group, as others have that wait for it; {}",
                                        name_of(first), what_it_does(first)),
                   .remedy = remedy_for(group, first)};
  for (const int rank : stayed)
    if (rank != first.rank) result.lines.push_back(fmt::format("nor has {}", name_of(rank_of(group, rank))));
  return result;
}

std::optional<Diagnosis> explain_look(const GroupView& group) {
  constexpr double kLongWait = 1.0;
  if (auto fault = find_fault(group)) return fault;
  const int waiting = longest_waiting(group);
  if (waiting < 0) return std::nullopt;
  Diagnosis wait = explain_wait(group, waiting);
  if (std::ranges::any_of(group.ranks, &RankView::has_found_fault)) return wait;
  const RankView& rank = rank_of(group, waiting);
  if (rank.waiting_time < kLongWait) {
    const bool is_of_others = !wait.blamed.empty() && !is_in(wait.blamed, waiting);
    if (!is_of_others || std::ranges::any_of(group.ranks, &RankView::is_far)) return std::nullopt;
    return Diagnosis{.blamed = wait.blamed,
                     .cause = fmt::format("rank {} waits for {} at the moment", waiting, names_of(wait.blamed))};
  }
  // Before the deadline much may still be on its way.
  if (wait.blamed.empty() && rank.waits_for.number != 0)
    return Diagnosis{.cause = fmt::format("rank {} has waited in {} for {:.1f} s{}", waiting, describe(rank.waits_for),
                                          rank.waiting_time, rank.waits_for.is_message() ? "" : ", as all others do"),
                     .lines = std::move(wait.lines)};
  if (waits_for_long_work(group, waiting)) wait.remedy.clear();
  return wait;
}

bool is_teller(const GroupView& group, int rank) {
  const auto teller = std::ranges::find_if(group.ranks, [](const RankView& other) {
    return other.is_known && other.end == RankEnd::none &&
           (other.state == ProcessState::runs || other.state == ProcessState::sleeps ||
            other.state == ProcessState::unknown);
  });
  return teller == group.ranks.end() || teller->rank == rank;
}

bool waits_for_long_work(const GroupView& group, int waiting) {
  if (std::ranges::none_of(group.ranks, &RankView::is_in_long_work)) return false;
  enum class Answer : std::uint8_t { unknown, no, yes };
  std::vector<Answer> answers(group.ranks.size(), Answer::unknown);
  const auto waits = [&](const auto& self, int number) -> bool {
    Answer& answer = answers[static_cast<std::size_t>(number)];
    if (answer != Answer::unknown) return answer == Answer::yes;
    answer = Answer::no;  // of a circle
    const std::vector<int> blamed = explain_wait(group, number).blamed;
    const bool may = !blamed.empty() && std::ranges::all_of(blamed, [&](int other) {
      const RankView& rank = rank_of(group, other);
      return can_go_on(rank) && (rank.is_in_long_work || (rank.is_waiting && self(self, other)));
    });
    if (may) answer = Answer::yes;
    return may;
  };
  return waits(waits, waiting);
}

}  // namespace tandem::comm
