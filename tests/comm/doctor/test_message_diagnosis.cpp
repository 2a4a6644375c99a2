// What is said of ranks that wait for messages.
#include "tandem/comm/doctor/message_diagnosis.h"

#include "tests/comm/doctor/rank_views.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

TEST_CASE("messages whose ranks wait for each other are a cycle") {
  const Diagnosis diagnosis = explain_wait(
      group_of({waits(0, receive_from(1)), waits(1, receive_from(2)), waits(2, receive_from(1)), busy(3, 5)}), 0);
  CHECK(diagnosis.cause == "ranks wait for each other in a cycle: 1 -> 2 -> 1");
  CHECK(diagnosis.blamed == std::vector{1, 2});
  CHECK_THAT(diagnosis.lines.front(),
             ContainsText("rank 1 (host h, pid 401) waits in receive of f32[4] from rank 2 (tag 0)"));
}

TEST_CASE("a message that nobody sends names the one that should") {
  RankView peer = busy(1, 5);
  peer.activity = "data";
  const Diagnosis diagnosis = explain_wait(group_of({waits(0, receive_from(1)), peer}), 0);
  CHECK_THAT(diagnosis.cause,
             ContainsText("rank 1 (host h, pid 401) has not sent to rank 0, which waits in receive of "
                          "f32[4] from rank 1 (tag 0); it last finished #5, 2.9 s ago, and is in data"));
  // One that waits for a message of a rank that waits for it in a sum is the late one.
  CHECK_THAT(explain_wait(group_of({waits(0, sum(6)), waits(1, receive_from(0))}), 1).cause,
             ContainsText("rank 1 (host h, pid 401) has not entered all_reduce #6") &&
                 ContainsText("and waits in receive of f32[4] from rank 0"));
  // Of a file, whatever it holds.
  CHECK_THAT(explain_wait(group_of({waits(0, receive_from(77)), peer}), 0).cause,
             ContainsText("rank 0 waits in receive"));
}

TEST_CASE("one that has left may have sent its messages before") {
  RankView left = busy(1, 5);
  left.end = RankEnd::left;
  for (const ProcessState state : {ProcessState::runs, ProcessState::ended}) {
    left.state = state;
    CHECK_FALSE(find_fault(group_of({waits(0, receive_from(1)), left})).has_value());
  }
  left.state = ProcessState::runs;
  CHECK_THAT(explain_wait(group_of({waits(0, receive_from(1)), left}), 0).cause,
             ContainsText("rank 1 (host h, pid 401) has not sent to rank 0") && ContainsText("has left the group"));
  left.end = RankEnd::failed;
  CHECK(find_fault(group_of({waits(0, receive_from(1)), left})).has_value());
  RankView killed = busy(1, 5);
  killed.state = ProcessState::ended;
  CHECK(find_fault(group_of({waits(0, receive_from(1)), killed})).has_value());
}

TEST_CASE("a send and a receive whose tags differ are told as that") {
  OperationView send{.number = 1, .kind = CollectiveKind::send, .dtype = DType::f32, .peer = 1, .tag = 3, .count = 4};
  OperationView receive = receive_from(0);
  receive.tag = 4;
  const auto both = [&] { return explain_wait(group_of({waits(0, send), waits(1, receive)}), 0); };
  CHECK(both().cause ==
        "tags differ: rank 0 (host h, pid 400) waits in send of f32[4] to rank 1 (tag 3), and rank 1 (host h, pid 401) "
        "in receive of f32[4] from rank 0 (tag 4)");
  CHECK_THAT(both().remedy, ContainsText("with the same tag"));
  // So they are where another rank waits for both.
  CHECK(explain_wait(group_of({waits(0, send), waits(1, receive), waits(2, sum(6))}), 2).cause == both().cause);
  // Sends that meet sends are a cycle, whatever their tags are.
  OperationView back = send;
  back.peer = 0;
  back.tag = 4;
  CHECK_THAT(explain_wait(group_of({waits(0, send), waits(1, back)}), 0).cause,
             ContainsText("in a cycle: 0 -> 1 -> 0"));
  // A message that was sent without a wait.
  RankView sender = busy(0, 5);
  sender.messages = {send};
  const auto lines = [&](const RankView& receiver) { return explain_wait(group_of({sender, receiver}), 1).lines; };
  RankView receiver = waits(1, receive);
  receiver.messages = {receive};
  CHECK(lines(receiver).back() == "rank 0 has begun send of f32[4] to rank 1 (tag 3): the tags differ");
  // It was received before.
  OperationView first = receive_from(0);
  first.tag = 3;
  receiver.messages = {first, receive};
  CHECK(lines(receiver) == std::vector<std::string>{"rank 1 waits in receive of f32[4] from rank 0 (tag 4)"});
}

TEST_CASE("at the end of a chain of messages stands who is to blame") {
  RankView computes = busy(2, 5);
  computes.activity = "data";
  for (const RankView& last : {in_state(busy(2, 5), ProcessState::stopped), computes, silent(2, 5, "beta")}) {
    const Diagnosis diagnosis = explain_wait(group_of({waits(0, receive_from(1)), waits(1, receive_from(2)), last}), 0);
    CHECK(diagnosis.blamed == std::vector{2});
    CHECK_THAT(diagnosis.cause, ContainsText("has not sent to rank 1, which waits in receive of f32[4] from rank 2"));
  }
  // So it does behind a collective, on both sides.
  const Diagnosis late = explain_wait(group_of({waits(0, sum(6)), waits(1, receive_from(2)),
                                                in_state(has_begun(busy(2, 5), 6), ProcessState::stopped)}),
                                      0);
  CHECK(late.blamed == std::vector{2});
  CHECK_THAT(late.cause, ContainsText("rank 2 (host h, pid 402, stopped) has not sent to rank 1"));
  const Diagnosis before =
      explain_wait(group_of({has_begun(waits(0, receive_from(1)), 6), waits(1, sum(6)), busy(2, 5)}), 0);
  CHECK(before.blamed == std::vector{2});
  CHECK_THAT(before.cause, ContainsText("rank 2 (host h, pid 402) has not entered all_reduce #6"));
}

TEST_CASE("a rank that is stopped while it waits for a message is named, not a cycle") {
  for (const OperationView& other : {receive_from(0), sum(6)}) {
    const Diagnosis two =
        explain_wait(group_of({waits(0, receive_from(1)), in_state(waits(1, other), ProcessState::stopped)}), 0);
    CHECK(two.blamed == std::vector{1});
    CHECK_THAT(two.cause, ContainsText("rank 1 (host h, pid 401, stopped) has not sent to rank 0"));
    CHECK_THAT(two.remedy, ContainsText("kill -CONT 401"));
  }
  const Diagnosis three =
      explain_wait(group_of({waits(0, receive_from(1)), in_state(waits(1, receive_from(2)), ProcessState::stopped),
                             waits(2, receive_from(0))}),
                   2);
  CHECK(three.blamed == std::vector{1});
}

TEST_CASE("what to do about a message goes by the rank that it waits for") {
  const auto remedy = [](const RankView& peer) {
    return explain_wait(group_of({waits(0, receive_from(1)), peer}), 0).remedy;
  };
  CHECK_THAT(remedy(busy(1, 5)), ContainsText("with the same tag"));
  CHECK_THAT(remedy(in_state(busy(1, 5), ProcessState::stopped)), ContainsText("kill -CONT 401"));
  CHECK_THAT(remedy(in_state(busy(1, 5), ProcessState::held)), ContainsText("--comm-timeout 0"));
  CHECK_THAT(remedy(silent(1, 5, "beta")), ContainsText("the host, or a link to it, may be down"));
  CHECK_THAT(explain_wait(group_of({waits(0, receive_from(1)), silent(1, 5, "beta")}), 0).cause,
             ContainsText("; host beta has not been heard of for 3.1 s"));
}

TEST_CASE("a send that its receive waits for is no cycle") {
  const auto pair = [](const OperationView& receive) {
    return explain_wait(group_of({waits(0, send_to(1)), waits(1, receive), waits(2, sum(6))}), 0);
  };
  const Diagnosis lost = pair(receive_from(0));
  CHECK(lost.blamed.empty());
  CHECK(
      lost.cause ==
      "rank 0 (host h, pid 400) waits in send of f32[4] to rank 1 (tag 0), and rank 1 (host h, pid 401) in receive of "
      "f32[4] from rank 0 (tag 0), which does not arrive");
  CHECK(lost.lines == std::vector<std::string>{"rank 2 waits in all_reduce #6 sum f32[4]"});
  OperationView longer = receive_from(0);
  longer.count = 5;
  CHECK(pair(longer).blamed == std::vector{0, 1});
  CHECK_THAT(pair(longer).cause, ContainsText("in receive of f32[5] from rank 0 (tag 0): they do not fit"));
  // Others wait for both.
  const Diagnosis late = explain_wait(group_of({waits(0, send_to(1)), waits(1, receive_from(0)), waits(2, sum(6))}), 2);
  CHECK_THAT(late.cause, ContainsText("rank 0 (host h, pid 400) has not entered all_reduce #6"));
  CHECK_THAT(late.remedy, ContainsText("a message may be lost"));
}

TEST_CASE("a cycle is told wherever it is, once its ranks wait for longer than between two messages") {
  RankView one = waits(2, receive_from(3)), other = waits(3, receive_from(2));
  const auto cause = [&] { return explain_wait(group_of({waits(0, sum(6)), busy(1, 5), one, other}), 0).cause; };
  CHECK(cause() == "ranks wait for each other in a cycle: 2 -> 3 -> 2");
  other.waiting_time = 0.02;
  CHECK_THAT(cause(), ContainsText("rank 1 (host h, pid 401) has not entered all_reduce #6"));
}

TEST_CASE("a message for a rank that has told what is wrong is not that rank's fault") {
  RankView told = in_state(waits(1, receive_from(2)), ProcessState::ended);
  told.has_found_fault = true;
  const RankView stopped = in_state(busy(2, 5), ProcessState::stopped);
  CHECK(explain_wait(group_of({waits(0, receive_from(1)), told, stopped}), 0).blamed == std::vector{2});
  told.is_waiting = false;
  const Diagnosis unknown = explain_wait(group_of({waits(0, receive_from(1)), told, busy(2, 5)}), 0);
  CHECK(unknown.blamed.empty());
  CHECK_THAT(unknown.cause, ContainsText("rank 1 (host h, pid 401, ended) has told what is wrong, and ended"));
}
