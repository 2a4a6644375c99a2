// Names of ranks, and lines about them.
#include "tandem/comm/doctor/rank_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

namespace tandem::comm {

namespace {

std::string_view word_of(const RankView& rank) {
  switch (rank.state) {
    case ProcessState::stopped:
      return ", stopped";
    case ProcessState::held:
      return ", held by a debugger";
    case ProcessState::ended:
      return ", ended";
    case ProcessState::halted:
      return ", does not run";
    default:
      return "";
  }
}

std::string last_finished(const RankView& rank) {
  if (rank.finished == 0) return "it has finished no collective yet";
  return fmt::format("it last finished #{}, {:.1f} s ago", rank.finished, rank.finished_ago);
}

/// Of a rank of another host that can say nothing more.
std::string what_it_did(const RankView& rank) {
  std::string text = fmt::format("{:.1f} s ago, when it was last heard of, it had finished {}", rank.heard_ago,
                                 rank.finished == 0 ? "no collective yet" : fmt::format("#{}", rank.finished));
  if (rank.is_waiting && rank.waits_for.number != 0) return text + ", and waited in " + describe(rank.waits_for);
  return rank.activity.empty() ? text : text + ", and was in " + rank.activity;
}

}  // namespace

bool is_in(const std::vector<int>& ranks, int rank) { return std::ranges::find(ranks, rank) != ranks.end(); }

const RankView& rank_of(const GroupView& group, int rank) { return group.ranks[static_cast<std::size_t>(rank)]; }

std::string names_of(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", i == 0 ? " " : ", ", ranks[i]);
    if (last > i) text += fmt::format("{}{}", last == i + 1 ? ", " : " to ", ranks[last]);
    i = last + 1;
  }
  return text;
}

std::string name_of(const RankView& rank) {
  if (!rank.is_known && rank.host.empty()) return fmt::format("rank {}, of which nothing is known here,", rank.rank);
  if (rank.host.empty()) return fmt::format("rank {}", rank.rank);
  const bool has_other_number = rank.whole_rank >= 0 && rank.whole_rank != rank.rank;
  return fmt::format("rank {} ({}host {}, pid {}{})", rank.rank,
                     has_other_number ? fmt::format("rank {} of all, ", rank.whole_rank) : "", rank.host, rank.process,
                     word_of(rank));
}

bool has_ended(const RankView& rank) { return rank.state == ProcessState::ended; }

bool can_go_on(const RankView& rank) {
  return rank.is_known && rank.end == RankEnd::none && rank.state != ProcessState::ended &&
         rank.state != ProcessState::stopped && rank.state != ProcessState::held && rank.state != ProcessState::halted;
}

bool has_told(const RankView& rank) { return rank.has_found_fault && !can_go_on(rank); }

bool is_held_up(const RankView& rank) {
  return rank.is_waiting && rank.waits_for.number != 0 && (can_go_on(rank) || has_told(rank));
}

std::string what_it_does(const RankView& rank) {
  if (!rank.is_known && rank.heard_ago > 0.0)
    return fmt::format("host {} has not been heard of for {:.1f} s", rank.host, rank.heard_ago);
  if (!rank.is_known) return "it shows nothing here";
  if (rank.is_inferred) return what_it_did(rank);
  std::string text = last_finished(rank);
  if (rank.end == RankEnd::left) return text + ", and has left the group";
  if (rank.end == RankEnd::failed) return text + ", and has left the group by an error";
  const std::string_view is = has_ended(rank) ? "was" : "is";
  if (rank.is_waiting && rank.waits_for.number != 0)
    return text + fmt::format(", and {} in {}{}", is == "is" ? "waits" : "was waiting", describe(rank.waits_for),
                              rank.step.empty() ? "" : ": " + rank.step);
  if (!rank.activity.empty()) text += fmt::format(", and {} in {}", is, rank.activity);
  if (rank.is_in_long_work) text += ", which may take long";
  return text;
}

std::vector<std::string> waiting_lines(const GroupView& group, const std::vector<int>& blamed) {
  std::map<std::string, std::vector<int>> by_text;
  for (const RankView& rank : group.ranks) {
    if (!rank.is_waiting || is_in(blamed, rank.rank) || rank.waits_for.number == 0 || has_told(rank)) continue;
    by_text[fmt::format("in {}{}", describe(rank.waits_for), rank.step.empty() ? "" : ": " + rank.step)].push_back(
        rank.rank);
  }
  std::vector<std::string> lines;
  for (const auto& [text, ranks] : by_text)
    lines.push_back(fmt::format("{} {} {}", names_of(ranks), ranks.size() == 1 ? "waits" : "wait", text));
  return lines;
}

std::string text_of(const Diagnosis& diagnosis) {
  std::string text = diagnosis.cause + "\n";
  for (const std::string& line : diagnosis.lines) text += "  " + line + "\n";
  if (!diagnosis.remedy.empty()) text += "  " + diagnosis.remedy + "\n";
  return text;
}

std::string numbers_of(const GroupView& group) {
  std::string here, of_all;
  bool differ = false;
  for (const RankView& rank : group.ranks) {
    const int number = rank.whole_rank < 0 ? rank.rank : rank.whole_rank;
    differ = differ || number != rank.rank;
    here += fmt::format("{}{}", here.empty() ? "" : ", ", rank.rank);
    of_all += fmt::format("{}{}", of_all.empty() ? "" : ", ", number);
  }
  return differ ? fmt::format("ranks {} of this group are ranks {} of all", here, of_all) : "";
}

std::string text_of(const GroupView& group) {
  std::string text;
  for (const RankView& rank : group.ranks) {
    text += name_of(rank);
    if (!rank.is_known) {
      text += rank.heard_ago > 0.0 ? fmt::format(" has not been heard of for {:.1f} s\n", rank.heard_ago)
                                   : " shows nothing\n";
      continue;
    }
    text += ": " + what_it_does(rank);
    if (rank.is_waiting) text += fmt::format(", for {:.1f} s", rank.waiting_time);
    text += '\n';
  }
  return text;
}

}  // namespace tandem::comm
