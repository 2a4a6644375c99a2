// Who is to blame where ranks wait in a collective.
#include "tandem/comm/doctor/collective_diagnosis.h"

#include "tandem/comm/doctor/message_diagnosis.h"
#include "tandem/comm/doctor/rank_words.h"

#include <fmt/format.h>

#include <utility>

namespace tandem::comm {

namespace {

/// Whether its waits let collective `number` go on, which it has entered: one that waits in a later one does.
bool waits_in(const RankView& rank, std::uint64_t number) {
  return rank.is_waiting && !rank.waits_for.is_message() && rank.waits_for.number >= number;
}

Diagnosis explain_late(const GroupView& group, const OperationView& operation, const std::vector<int>& late,
                       std::vector<int> blamed) {
  Diagnosis result{.blamed = std::move(blamed)};
  const RankView& first = rank_of(group, result.blamed.front());
  result.cause =
      fmt::format("{} {} {}; {}", name_of(first), first.is_inferred ? "does not answer in" : "has not entered",
                  describe(operation), what_it_does(first));
  for (const int rank : late) {
    if (rank == first.rank) continue;
    const RankView& other = rank_of(group, rank);
    result.lines.push_back(fmt::format("nor has {}; {}", name_of(other), what_it_does(other)));
  }
  for (std::string& line : waiting_lines(group, late)) result.lines.push_back(std::move(line));
  result.remedy = remedy_for(group, first);
  return result;
}

/// All that show anything here have entered and wait: for ranks of other hosts.
Diagnosis explain_silence(const GroupView& group, const RankView& waiting, const OperationView& operation,
                          const std::vector<int>& silent) {
  const RankView& first = rank_of(group, silent.front());
  Diagnosis result{.blamed = silent};
  result.cause =
      fmt::format("{} does not answer in {}, for {:.1f} s", name_of(first), describe(operation), waiting.waiting_time);
  if (first.heard_ago > 0.0) result.cause += "; " + what_it_does(first);
  for (const int rank : silent)
    if (rank != first.rank) result.lines.push_back(fmt::format("nor does {}", name_of(rank_of(group, rank))));
  for (std::string& line : waiting_lines(group, silent)) result.lines.push_back(std::move(line));
  result.remedy = remedy_for_silence(first);
  return result;
}

/// All have entered, and `blamed` do not go on with it.
Diagnosis explain_absent(const GroupView& group, const OperationView& operation, std::vector<int> blamed) {
  Diagnosis result{.blamed = std::move(blamed)};
  const RankView& first = rank_of(group, result.blamed.front());
  const bool shows_step = waits_in(first, operation.number) && first.waits_for.number == operation.number;
  if (first.finished >= operation.number)
    result.cause = fmt::format("{} has finished {}, which does not end for others, and does not go on; {}",
                               name_of(first), describe(operation), what_it_does(first));
  else if (first.end != RankEnd::none)
    result.cause = fmt::format("{} has begun {}, and did not end it; {}", name_of(first), describe(operation),
                               what_it_does(first));
  else
    result.cause = fmt::format("{} is in {}{}, and does not go on{}; {}", name_of(first), describe(operation),
                               shows_step && !first.step.empty() ? ": " + first.step : "",
                               can_go_on(first) ? " with it (nor waits for it)" : "", what_it_does(first));
  result.remedy = remedy_for(group, first);
  for (std::size_t i = 1; i < result.blamed.size(); ++i) {
    const RankView& other = rank_of(group, result.blamed[i]);
    result.lines.push_back(fmt::format("{}: {}", name_of(other), what_it_does(other)));
  }
  for (std::string& line : waiting_lines(group, result.blamed)) result.lines.push_back(std::move(line));
  return result;
}

/// Ranks that cannot go on, and which may have something that others still need.
std::vector<int> those_that_cannot_go_on(const GroupView& group) {
  std::vector<int> ranks;
  for (const RankView& rank : group.ranks)
    if (rank.is_known && rank.end == RankEnd::none && !can_go_on(rank) && !has_told(rank)) ranks.push_back(rank.rank);
  return ranks;
}

}  // namespace

Missing missing_in(const GroupView& group, const OperationView& operation) {
  Missing missing;
  std::vector<int> absent;
  for (const RankView& rank : group.ranks) {
    if (!rank.is_known)
      missing.silent.push_back(rank.rank);
    else if (rank.started < operation.number)
      missing.ranks.push_back(rank.rank);
    else if (rank.finished < operation.number && (!waits_in(rank, operation.number) || !can_go_on(rank)))
      absent.push_back(rank.rank);
  }
  missing.have_entered = missing.ranks.empty();
  if (missing.have_entered) missing.ranks = std::move(absent);
  return missing;
}

std::vector<int> worst_of(const GroupView& group, const std::vector<int>& ranks) {
  std::vector<int> gone, able, elsewhere, others;
  for (const int number : ranks) {
    const RankView& rank = rank_of(group, number);
    if (has_told(rank)) continue;
    std::vector<int>& kind = !can_go_on(rank)       ? gone
                             : rank.is_in_long_work ? others
                             : rank.waits_elsewhere ? elsewhere
                                                    : able;
    kind.push_back(number);
  }
  for (const std::vector<int>* const kind : {&gone, &able, &elsewhere})
    if (!kind->empty()) return *kind;
  return others;
}

Diagnosis explain_collective(const GroupView& group, const RankView& waiting, const OperationView& operation,
                             const Missing& missing, std::vector<int> blamed) {
  if (!blamed.empty())
    return missing.have_entered ? explain_absent(group, operation, std::move(blamed))
                                : explain_late(group, operation, missing.ranks, std::move(blamed));
  if (!missing.silent.empty()) return explain_silence(group, waiting, operation, missing.silent);
  if (std::vector<int> gone = those_that_cannot_go_on(group); !gone.empty())
    return explain_absent(group, operation, std::move(gone));
  if (!missing.ranks.empty())
    return explain_told(group, rank_of(group, missing.ranks.front()),
                        fmt::format(", and rank {} waits in {}", waiting.rank, describe(operation)));
  return {.cause = fmt::format("all ranks have entered {}, and it does not end", describe(operation)),
          .lines = waiting_lines(group, {}),
          .remedy = "a message may be lost: look at the network between the hosts, and for a rank that is very slow"};
}

Diagnosis explain_told(const GroupView& group, const RankView& rank, std::string_view what) {
  return {
      .cause = fmt::format("{} has told what is wrong{}{}", name_of(rank), has_ended(rank) ? ", and ended" : "", what),
      .lines = waiting_lines(group, {rank.rank}),
      .remedy = fmt::format("look at what rank {} says", rank.rank)};
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

std::string remedy_for(const GroupView& group, const RankView& rank) {
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
  if (rank.end == RankEnd::failed || has_ended(rank)) return std::string(remedy_for_end(rank.end));
  if (rank.waits_elsewhere) return fmt::format("rank {} waits in another group: look at what is told there", rank.rank);
  if (is_held_up(rank) && rank.waits_for.is_message())
    return is_answered(group, rank) ? std::string(kLostRemedy)
                                    : fmt::format("rank {} waits for a message that rank {} does not answer: {}",
                                                  rank.rank, rank.waits_for.peer, kPairRemedy);
  return "if that rank is just slow, give a longer deadline: --comm-timeout SECONDS, 0 for none "
         "(TANDEM_COMM_TIMEOUT, GroupOptions::timeout)";
}

std::string_view remedy_for_silence(const RankView& rank) {
  return rank.heard_ago > 0.0
             ? "look at that host and its network: the host, or a link to it, may be down"
             : "what ranks of another host do is told there; if nothing is, look at that host and its network: "
               "a link may be down";
}

}  // namespace tandem::comm
