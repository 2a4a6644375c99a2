// Who is to blame where ranks wait for messages.
#include "tandem/comm/doctor/message_diagnosis.h"

#include "tandem/comm/doctor/collective_diagnosis.h"
#include "tandem/comm/doctor/rank_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tandem::comm {

namespace {

/// Ranks that wait for each other's messages in a circle, beginning with one that `from` waits for in the end.
std::vector<int> circle_from(const GroupView& group, int from) {
  std::vector<int> way;
  for (int rank = from;;) {
    const auto seen = std::ranges::find(way, rank);
    if (seen != way.end()) return {seen, way.end()};
    way.push_back(rank);
    const RankView& view = rank_of(group, rank);
    const bool waits = is_held_up(view) && can_go_on(view) && view.waits_for.is_message();
    const int next = view.waits_for.peer;
    if (!waits || next < 0 || static_cast<std::size_t>(next) >= group.ranks.size()) return {};
    rank = next;
  }
}

Diagnosis explain_circle(const GroupView& group, const std::vector<int>& circle) {
  Diagnosis result{.blamed = circle};
  std::string way = std::to_string(circle.front());
  for (std::size_t i = 1; i <= circle.size(); ++i) way += fmt::format(" -> {}", circle[i % circle.size()]);
  result.cause = fmt::format("ranks wait for each other in a cycle: {}", way);
  for (const int rank : circle) {
    const RankView& view = rank_of(group, rank);
    result.lines.push_back(fmt::format("{} waits in {}", name_of(view), describe(view.waits_for)));
  }
  result.remedy = "begin receives before sends that wait (receive_async()), or let one of the ranks send first";
  return result;
}

/// Of two ranks one of which sends to the other, which receives from it, whether their tags keep them apart.
bool have_other_tags(const GroupView& group, const std::vector<int>& circle) {
  if (circle.size() != 2) return false;
  const OperationView& one = rank_of(group, circle[0]).waits_for;
  const OperationView& other = rank_of(group, circle[1]).waits_for;
  return one.kind != other.kind && one.tag != other.tag;
}

Diagnosis explain_tags(const GroupView& group, const std::vector<int>& circle) {
  Diagnosis result{.blamed = circle, .remedy = kPairRemedy};
  const RankView& one = rank_of(group, circle[0]);
  const RankView& other = rank_of(group, circle[1]);
  result.cause = fmt::format("tags differ: {} waits in {}, and {} in {}", name_of(one), describe(one.waits_for),
                             name_of(other), describe(other.waits_for));
  return result;
}

/// Of a send that its receive waits for.
Diagnosis explain_answered(const GroupView& group, const RankView& one, const RankView& other) {
  Diagnosis result{.lines = waiting_lines(group, {one.rank, other.rank}), .remedy = kLostRemedy};
  const OperationView& own = one.waits_for;
  const bool fits = own.dtype == other.waits_for.dtype && own.count == other.waits_for.count;
  result.cause = fmt::format("{} waits in {}, and {} in {}{}", name_of(one), describe(own), name_of(other),
                             describe(other.waits_for), fits ? ", which does not arrive" : ": they do not fit");
  if (!fits) {
    result.blamed = {std::min(one.rank, other.rank), std::max(one.rank, other.rank)};
    result.remedy = "a send() and its receive() need the same dtype and number of elements";
  }
  return result;
}

/// Whether the last message between them that `peer` has begun has another tag than the one that `waiting` waits in,
/// and `waiting` has begun none that answers it. `last`: that message.
bool has_other_tag(const RankView& peer, const RankView& waiting, OperationView& last) {
  const auto answers = [](const OperationView& message, const OperationView& other) {
    return message.kind != other.kind && message.tag == other.tag;
  };
  const auto is_between = [](const OperationView& message, int rank) { return message.peer == rank; };
  last = {};
  for (const OperationView& message : peer.messages)
    if (is_between(message, waiting.rank) && message.kind != waiting.waits_for.kind) last = message;
  if (last.number == 0 || last.tag == waiting.waits_for.tag) return false;
  return std::ranges::none_of(waiting.messages, [&](const OperationView& message) {
    return is_between(message, peer.rank) && answers(message, last);
  });
}

}  // namespace

std::optional<Diagnosis> find_circle(const GroupView& group, int from) {
  // Ranks that send each other one message after another are seen in waits, too.
  constexpr double kLongerThanMessage = 0.1;
  const std::vector<int> circle = circle_from(group, from);
  if (circle.empty() || is_answered(group, rank_of(group, circle.front()))) return std::nullopt;
  const auto may_be_between = [&](int rank) { return rank_of(group, rank).waiting_time < kLongerThanMessage; };
  if (std::ranges::any_of(circle, may_be_between)) return std::nullopt;
  return have_other_tags(group, circle) ? explain_tags(group, circle) : explain_circle(group, circle);
}

bool is_answered(const GroupView& group, const RankView& rank) {
  const OperationView& own = rank.waits_for;
  if (!own.is_message() || own.peer < 0 || static_cast<std::size_t>(own.peer) >= group.ranks.size()) return false;
  const RankView& peer = rank_of(group, own.peer);
  const OperationView& other = peer.waits_for;
  return is_held_up(peer) && can_go_on(peer) && other.is_message() && other.peer == rank.rank &&
         own.kind != other.kind && own.tag == other.tag;
}

Diagnosis explain_message(const GroupView& group, const RankView& waiting) {
  const int number = waiting.waits_for.peer;
  if (number < 0 || static_cast<std::size_t>(number) >= group.ranks.size())
    return {.cause = fmt::format("rank {} waits in {}", waiting.rank, describe(waiting.waits_for))};
  const RankView& peer = rank_of(group, number);
  if (is_answered(group, waiting)) return explain_answered(group, waiting, peer);
  if (has_told(peer))
    return explain_told(group, peer,
                        fmt::format(", and rank {} waits in {}", waiting.rank, describe(waiting.waits_for)));
  const bool receives = waiting.waits_for.kind == CollectiveKind::receive;
  Diagnosis result{.blamed = {peer.rank}};
  result.cause = fmt::format("{} {} rank {}, which waits in {}; {}", name_of(peer),
                             receives ? "has not sent to" : "has not received from", waiting.rank,
                             describe(waiting.waits_for), what_it_does(peer));
  result.lines = waiting_lines(group, result.blamed);
  if (OperationView last; has_other_tag(peer, waiting, last))
    result.lines.push_back(fmt::format("rank {} has begun {}: the tags differ", peer.rank, describe(last)));
  if (!peer.is_known)
    result.remedy = remedy_for_silence(peer);
  else
    result.remedy = can_go_on(peer) || peer.end == RankEnd::left ? kPairRemedy : remedy_for(group, peer);
  return result;
}

}  // namespace tandem::comm
