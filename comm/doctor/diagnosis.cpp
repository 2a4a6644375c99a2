// Who is to blame.
#include "tandem/comm/doctor/diagnosis.h"

#include "tandem/comm/doctor/message_diagnosis.h"
#include "tandem/comm/doctor/rank_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

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
  if (rank.end != RankEnd::none) return !has_entered;
  return has_ended(rank) && rank.finished < operation.number;
}

std::string_view remedy_for_end(RankEnd end) {
  switch (end) {
    case RankEnd::left:
      return "it returned while the others go on: all ranks need the same number of steps and collectives";
    case RankEnd::failed:
      return "see its own error";
    case RankEnd::none:
      break;
  }
  return "it was killed (out of memory? see dmesg), crashed, or called exit(): look at the output of that rank";
}

Diagnosis explain_end(const GroupView& group, const RankView& waiting, std::vector<int> gone) {
  const RankView& first = rank_of(group, gone.front());
  Diagnosis result{.is_final = has_ended(first) && first.end == RankEnd::none && !first.is_inferred,
                   .blamed = std::move(gone)};
  const OperationView& operation = waiting.waits_for;
  const std::string waited_in = describe(operation);
  const bool has_entered = !operation.is_message() && first.started >= operation.number;
  const std::string missed =
      operation.is_message()
          ? fmt::format("has ended, and rank {} waits in {}", waiting.rank, waited_in)
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

// Collectives ---------------------------------------------------------------------------------------------------------

/// Those of `ranks` that cannot go on, or all where all can.
std::vector<int> worst_of(const GroupView& group, const std::vector<int>& ranks) {
  std::vector<int> worst;
  for (const int rank : ranks)
    if (!can_go_on(rank_of(group, rank))) worst.push_back(rank);
  return worst.empty() ? ranks : worst;
}

std::string remedy_for(const RankView& rank) {
  const std::string there = rank.is_far ? fmt::format(" on host {}", rank.host) : "";
  if (rank.state == ProcessState::stopped)
    return fmt::format("it was stopped by a signal (SIGSTOP, Ctrl-Z): kill -CONT {}{} lets it go on", rank.process,
                       there);
  if (rank.state == ProcessState::halted)
    return fmt::format(
        "its host answers, and the process does nothing: it was stopped by a signal (kill -CONT {}{} lets it "
        "go on), or is held by a debugger",
        rank.process, there);
  if (rank.state == ProcessState::held) return "for a run under a debugger, give no deadline: --comm-timeout 0";
  if (rank.end == RankEnd::left)
    return "it left the group before that was done: wait for every work (Work::wait()) before the group is dropped";
  if (rank.end == RankEnd::failed) return std::string(remedy_for_end(rank.end));
  if (rank.is_waiting && rank.waits_for.number != 0 && rank.waits_for.is_message())
    return fmt::format("rank {} waits for a message that rank {} does not answer: {}", rank.rank, rank.waits_for.peer,
                       kPairRemedy);
  return "if that rank is just slow, give a longer deadline: --comm-timeout SECONDS, 0 for none "
         "(TANDEM_COMM_TIMEOUT, GroupOptions::timeout)";
}

Diagnosis explain_late(const GroupView& group, const OperationView& operation, const std::vector<int>& late) {
  Diagnosis result{.blamed = worst_of(group, late)};
  const RankView& first = rank_of(group, result.blamed.front());
  if (can_go_on(first))
    if (auto circle = find_circle(group, first.rank)) return *std::move(circle);
  result.cause =
      fmt::format("{} {} {}; {}", name_of(first), first.is_inferred ? "does not answer in" : "has not entered",
                  describe(operation), what_it_does(first));
  for (const int rank : late) {
    if (rank == first.rank) continue;
    const RankView& other = rank_of(group, rank);
    result.lines.push_back(fmt::format("nor has {}; {}", name_of(other), what_it_does(other)));
  }
  for (std::string& line : waiting_lines(group, late)) result.lines.push_back(std::move(line));
  result.remedy = remedy_for(first);
  return result;
}

/// All that show anything here have entered and wait: for ranks of other hosts.
Diagnosis explain_silence(const GroupView& group, const RankView& waiting, const std::vector<int>& silent) {
  const RankView& first = rank_of(group, silent.front());
  Diagnosis result{.blamed = silent};
  result.cause = fmt::format("{} does not answer in {}, for {:.1f} s", name_of(first), describe(waiting.waits_for),
                             waiting.waiting_time);
  if (first.heard_ago > 0.0)
    result.cause += fmt::format("; host {} has not been heard of for {:.1f} s", first.host, first.heard_ago);
  for (const int rank : silent)
    if (rank != first.rank) result.lines.push_back(fmt::format("nor does {}", name_of(rank_of(group, rank))));
  for (std::string& line : waiting_lines(group, silent)) result.lines.push_back(std::move(line));
  result.remedy =
      first.heard_ago > 0.0
          ? "look at that host and its network: the host, or a link to it, may be down"
          : "what ranks of another host do is told there; if nothing is, look at that host and its network: "
            "a link may be down";
  return result;
}

/// All have entered, and it does not end.
Diagnosis explain_stuck(const GroupView& group, const RankView& waiting) {
  const OperationView& operation = waiting.waits_for;
  std::vector<int> absent;
  for (const RankView& rank : group.ranks) {
    const bool waits_there = rank.is_waiting && rank.waits_for.number == operation.number;
    if (rank.is_known && rank.finished < operation.number && (!waits_there || !can_go_on(rank)))
      absent.push_back(rank.rank);
  }
  Diagnosis result{.blamed = absent.empty() ? absent : worst_of(group, absent)};
  if (absent.empty()) {
    result.cause = fmt::format("all ranks have entered {}, and it does not end", describe(operation));
    result.remedy = "a message may be lost: look at the network between the hosts, and for a rank that is very slow";
  } else {
    const RankView& first = rank_of(group, result.blamed.front());
    result.cause = first.end == RankEnd::none
                       ? fmt::format("{} is in {}{}, and does not go on{}; {}", name_of(first), describe(operation),
                                     first.step.empty() ? "" : ": " + first.step,
                                     can_go_on(first) ? " with it (nor waits for it)" : "", what_it_does(first))
                       : fmt::format("{} has begun {}, and did not end it; {}", name_of(first), describe(operation),
                                     what_it_does(first));
    result.remedy = remedy_for(first);
  }
  result.lines = waiting_lines(group, result.blamed);
  return result;
}

/// Of a rank that waits for a message: the collective in which the other one waits for it; else what it waits for.
OperationView missed_operation(const GroupView& group, const RankView& waiting) {
  const OperationView& operation = waiting.waits_for;
  if (!operation.is_message() || operation.peer < 0 || static_cast<std::size_t>(operation.peer) >= group.ranks.size())
    return operation;
  const RankView& peer = rank_of(group, operation.peer);
  const bool misses = peer.is_known && peer.is_waiting && peer.waits_for.number != 0 && !peer.waits_for.is_message() &&
                      waiting.started < peer.waits_for.number;
  return misses ? peer.waits_for : operation;
}

/// Whether `rank` is held up in a collective before `operation`: what it waits for there is to blame, not itself.
bool waits_before(const RankView& rank, const OperationView& operation) {
  const OperationView& other = rank.waits_for;
  return rank.is_waiting && can_go_on(rank) && other.number != 0 && !other.is_message() &&
         other.number < operation.number;
}

}  // namespace

int longest_waiting(const GroupView& group) {
  const RankView* longest = nullptr;
  for (const RankView& rank : group.ranks)
    if (rank.is_waiting && can_go_on(rank) && (longest == nullptr || rank.waiting_time > longest->waiting_time))
      longest = &rank;
  return longest == nullptr ? -1 : longest->rank;
}

std::optional<Diagnosis> find_fault(const GroupView& group) {
  if (auto difference = find_difference(group)) return difference;
  return find_gone(group);
}

Diagnosis explain_wait(const GroupView& group, int waiting) {
  if (auto certain = find_fault(group)) return *std::move(certain);
  const RankView& rank = rank_of(group, waiting);
  const OperationView operation = missed_operation(group, rank);
  if (operation.number == 0) return {.cause = fmt::format("rank {} waits", waiting), .lines = waiting_lines(group, {})};
  if (operation.is_message()) return explain_message(group, rank);
  std::vector<int> late, silent;
  for (const RankView& other : group.ranks) {
    if (!other.is_known)
      silent.push_back(other.rank);
    else if (other.started < operation.number)
      late.push_back(other.rank);
  }
  Diagnosis result = late.empty() ? explain_stuck(group, rank) : explain_late(group, operation, late);
  if (result.blamed.empty() && !silent.empty()) return explain_silence(group, rank, silent);
  for (const int blamed : result.blamed) {
    if (!waits_before(rank_of(group, blamed), operation)) continue;
    if (Diagnosis earlier = explain_wait(group, blamed); !earlier.blamed.empty()) return earlier;
  }
  return result;
}

Diagnosis explain_leaving(const GroupView& group, const std::vector<int>& stayed) {
  const RankView& first = rank_of(group, stayed.front());
  Diagnosis result{.blamed = stayed,
                   .cause = fmt::format("{} has not left the group, as others have that wait for it; {}",
                                        name_of(first), what_it_does(first)),
                   .remedy = remedy_for(first)};
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
    const bool is_of_others = !wait.blamed.empty() && std::ranges::find(wait.blamed, waiting) == wait.blamed.end();
    if (!is_of_others || std::ranges::any_of(group.ranks, &RankView::is_far)) return std::nullopt;
    return Diagnosis{.blamed = wait.blamed,
                     .cause = fmt::format("rank {} waits for {} at the moment", waiting, names_of(wait.blamed))};
  }
  // Before the deadline much may still be on its way.
  if (wait.blamed.empty() && rank.waits_for.number != 0)
    return Diagnosis{.cause = fmt::format("rank {} has waited in {} for {:.1f} s, as all others do", waiting,
                                          describe(rank.waits_for), rank.waiting_time),
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
