// What is said of ranks that show all kinds of things.
#include "tandem/comm/doctor/diagnosis.h"

#include "tests/comm/doctor/rank_views.h"
#include "tests/support/catch.h"

#include <fmt/format.h>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

TEST_CASE("a rank that is late is named, with what it is in") {
  RankView late = busy(2, 1041);
  late.state = ProcessState::stopped;
  late.activity = "backward of features.7";
  GroupView group =
      group_of({waits(0, sum(1042, 65536)), waits(1, sum(1042, 65536)), late, waits(3, sum(1042, 65536))});
  for (const int rank : {0, 1, 3}) group.ranks[static_cast<std::size_t>(rank)].step = "step 2 of ring";
  CHECK_FALSE(find_fault(group).has_value());  // it may go on
  const Diagnosis diagnosis = explain_wait(group, 0);
  CHECK(diagnosis.blamed == std::vector{2});
  CHECK(diagnosis.cause ==
        "rank 2 (host h, pid 402, stopped) has not entered all_reduce #1042 sum f32[65536]; it last finished #1041, "
        "2.9 s ago, and is in backward of features.7");
  CHECK(diagnosis.lines ==
        std::vector<std::string>{"ranks 0, 1, 3 wait in all_reduce #1042 sum f32[65536]: step 2 of ring"});
  CHECK(diagnosis.remedy.starts_with("it was stopped by a signal"));
}

TEST_CASE("of several late ranks the one that cannot go on is named first") {
  RankView stopped = busy(2, 5);
  stopped.state = ProcessState::held;
  const Diagnosis diagnosis = explain_wait(group_of({waits(0, sum(6)), busy(1, 5), stopped}), 0);
  CHECK(diagnosis.blamed == std::vector{2});
  CHECK_THAT(diagnosis.cause, ContainsText("rank 2 (host h, pid 402, held by a debugger) has not entered"));
  CHECK_THAT(diagnosis.lines.front(), ContainsText("nor has rank 1"));
  CHECK_THAT(diagnosis.remedy, ContainsText("--comm-timeout 0"));
}

TEST_CASE("a rank whose process has ended is a fault as soon as another waits for it") {
  RankView gone = busy(1, 5);
  gone.state = ProcessState::ended;
  CHECK_FALSE(find_fault(group_of({busy(0, 5), gone})).has_value());  // nobody needs it
  const auto fault = find_fault(group_of({waits(0, sum(6)), gone, busy(2, 5)}));
  REQUIRE(fault.has_value());
  CHECK(fault->is_final);
  CHECK(fault->blamed == std::vector{1});
  CHECK(fault->cause ==
        "rank 1 (host h, pid 401, ended) has not entered all_reduce #6 sum f32[4]; it last finished #5, 2.9 s ago");
  SECTION("in the middle of a collective") {
    RankView inside = waits(1, sum(6));
    inside.state = ProcessState::ended;
    inside.step = "step 2 of ring, for rank 0";
    const auto other = find_fault(group_of({waits(0, sum(6)), inside}));
    REQUIRE(other.has_value());
    CHECK_THAT(other->cause, ContainsText("did not end all_reduce #6") &&
                                 ContainsText("was waiting in all_reduce #6 sum f32[4]: step 2 of ring, for rank 0"));
  }
}

TEST_CASE("a rank that has left is a fault for what it has not entered alone") {
  RankView left = busy(1, 5);
  left.end = RankEnd::left;
  const auto fault = find_fault(group_of({waits(0, sum(6)), left}));
  REQUIRE(fault.has_value());
  CHECK_FALSE(fault->is_final);
  CHECK_THAT(fault->cause, ContainsText("rank 1 (host h, pid 401) has not entered all_reduce #6") &&
                               ContainsText("and has left the group"));
  CHECK_THAT(fault->remedy, ContainsText("the same number of steps"));
  // It was the root of what the other still takes part in.
  left.collectives = {broadcast_from(1, 5)};
  CHECK_FALSE(find_fault(group_of({waits(0, broadcast_from(1, 5)), left})).has_value());
  left.collectives.clear();
  left.end = RankEnd::failed;
  CHECK_THAT(find_fault(group_of({waits(0, sum(6)), left}))->remedy, ContainsText("its own error"));
}

TEST_CASE("collectives of one number that differ are a fault, of which the fewer ranks have the blame") {
  const auto cause = [](std::vector<RankView> ranks) { return find_fault(group_of(std::move(ranks)))->cause; };
  CHECK(cause({waits(0, sum(6)), waits(1, sum(6, 3)), waits(2, sum(6))}) ==
        "rank 1 (host h, pid 401) calls all_reduce #6 sum f32[3], and ranks 0, 2 call all_reduce #6 sum f32[4]");
  CHECK_THAT(cause({waits(0, broadcast_from(0, 6)), waits(1, broadcast_from(1, 6)), busy(2, 5)}),
             ContainsText("rank 1 (host h, pid 401) calls broadcast #6 f32[4] from rank 1, and rank 0 calls"));
  OperationView other_dtype = sum(6), other_op = sum(6);
  other_dtype.dtype = DType::i32;
  other_op.op = ReduceOp::max;
  CHECK_THAT(cause({waits(0, sum(6)), waits(1, sum(6)), waits(2, other_dtype)}), ContainsText("sum i32[4]"));
  CHECK_THAT(cause({waits(0, sum(6)), waits(1, sum(6)), waits(2, other_op)}), ContainsText("max f32[4]"));
  // What both have done since does not hide it.
  RankView first = busy(0, 7), second = busy(1, 7);
  first.collectives = {sum(6), sum(7)};
  second.collectives = {broadcast_from(0, 6), sum(7)};
  CHECK_THAT(cause({first, second}), ContainsText("broadcast #6"));
  // Each other way is told by itself.
  const Diagnosis three =
      *find_fault(group_of({waits(0, sum(6)), waits(1, sum(6)), waits(2, sum(6, 3)), waits(3, broadcast_from(0, 6))}));
  CHECK(three.blamed == std::vector{2, 3});
  CHECK(three.lines == std::vector<std::string>{"rank 3 (host h, pid 403) calls broadcast #6 f32[4] from rank 0"});
  // An operation of sums does not look at the root, one that moves elements not at the operation.
  OperationView root = sum(6);
  root.peer = 3;
  CHECK_FALSE(find_fault(group_of({waits(0, sum(6)), waits(1, root)})).has_value());
}

TEST_CASE("of a rank that shows two collectives of one number nobody says that ranks differ") {
  RankView damaged = busy(0, 6);
  damaged.collectives = {sum(6), sum(6, 3)};
  CHECK_FALSE(find_fault(group_of({damaged, busy(1, 5)})).has_value());
}

TEST_CASE("where all have entered, one that does not wait is named, else what all wait for") {
  RankView absent = busy(1, 5);
  absent.started = 6;  // and has gone on computing
  absent.collectives.push_back(sum(6));
  const Diagnosis diagnosis = explain_wait(group_of({waits(0, sum(6)), absent}), 0);
  CHECK_THAT(diagnosis.cause,
             ContainsText("rank 1 (host h, pid 401) is in all_reduce #6 sum f32[4], and does not go on"));
  GroupView all = group_of({waits(0, sum(6)), waits(1, sum(6))});
  all.ranks[0].step = "step 1 of ring, for rank 1";
  all.ranks[1].step = "step 1 of ring, for rank 0";
  const Diagnosis lost = explain_wait(all, 0);
  CHECK(lost.blamed.empty());
  CHECK_THAT(lost.cause, ContainsText("all ranks have entered all_reduce #6"));
  CHECK(lost.lines.size() == 2);
  // What a rank was in when it was stopped.
  all.ranks[1].state = ProcessState::stopped;
  CHECK_THAT(explain_wait(all, 0).cause,
             ContainsText("rank 1 (host h, pid 401, stopped) is in all_reduce #6 sum f32[4]: "
                          "step 1 of ring, for rank 0, and does not go on"));
}

TEST_CASE("ranks that wait for long work are those that wait for it, and those that wait for them") {
  RankView writes = busy(0, 5);
  const auto may_wait = [&](int rank) {
    return waits_for_long_work(group_of({writes, waits(1, receive_from(0)), waits(2, receive_from(1))}), rank);
  };
  CHECK_FALSE(may_wait(1));
  writes.is_in_long_work = true;
  CHECK(may_wait(1));
  CHECK(may_wait(2));
  CHECK_FALSE(may_wait(0));  // which does not wait
  CHECK(waits_for_long_work(group_of({writes, waits(1, sum(6)), waits(2, sum(6))}), 2));
  CHECK_FALSE(waits_for_long_work(group_of({writes, waits(1, sum(6)), busy(2, 5)}), 1));  // and for rank 2
  CHECK_FALSE(waits_for_long_work(group_of({writes, waits(1, receive_from(2)), waits(2, receive_from(1))}), 1));
  writes.state = ProcessState::stopped;
  CHECK_FALSE(may_wait(1));
}

TEST_CASE("ranks that show nothing are said to") {
  RankView unknown;
  unknown.rank = 1;
  CHECK_THAT(
      explain_wait(group_of({waits(0, sum(6)), unknown}), 0).cause,
      ContainsText("rank 1, of which nothing is known here, does not answer in all_reduce #6 sum f32[4], for 2.9 s"));
  CHECK_THAT(text_of(group_of({busy(0, 0), unknown})),
             ContainsText("it has finished no collective yet") &&
                 ContainsText("rank 1, of which nothing is known here, shows nothing"));
}

TEST_CASE("ranks of other hosts are named where all of this host wait for them, and after those of this host") {
  RankView far = busy(2, 0);
  far.is_known = false;
  far.host = "g";
  RankView farther = far;
  farther.rank = 3;
  const Diagnosis silence = explain_wait(group_of({waits(0, sum(6)), waits(1, sum(6)), far, farther}), 0);
  CHECK(silence.blamed == std::vector{2, 3});
  CHECK(silence.cause == "rank 2 (host g, pid 402) does not answer in all_reduce #6 sum f32[4], for 2.9 s");
  CHECK(silence.lines ==
        std::vector<std::string>{"nor does rank 3 (host g, pid 402)", "ranks 0, 1 wait in all_reduce #6 sum f32[4]"});
  CHECK_THAT(silence.remedy, ContainsText("a link may be down"));
  const Diagnosis late = explain_wait(group_of({waits(0, sum(6)), busy(1, 5), far, farther}), 0);
  CHECK(late.blamed == std::vector{1});
  CHECK(late.lines == std::vector<std::string>{"rank 0 waits in all_reduce #6 sum f32[4]"});
  RankView stopped = waits(1, sum(6));
  stopped.state = ProcessState::stopped;
  CHECK(explain_wait(group_of({waits(0, sum(6)), stopped, far, farther}), 0).blamed == std::vector{1});
  // Of a message as well, nothing is said of what is not known.
  RankView waiting = waits(0, receive_from(2));
  CHECK_THAT(explain_wait(group_of({waiting, busy(1, 5), far}), 0).cause, ContainsText("; it shows nothing here"));
}

TEST_CASE("a rank of another host is named as one of this host, and its remedy is for that host") {
  RankView stopped = busy(2, 1041);
  stopped.host = "beta";
  stopped.is_far = true;
  stopped.heard_ago = 0.2;
  stopped.state = ProcessState::stopped;
  const Diagnosis diagnosis = explain_wait(group_of({waits(0, sum(1042)), waits(1, sum(1042)), stopped}), 0);
  CHECK(diagnosis.blamed == std::vector{2});
  CHECK_THAT(diagnosis.cause,
             ContainsText("rank 2 (host beta, pid 402, stopped) has not entered all_reduce #1042 sum f32[4]"));
  CHECK_THAT(diagnosis.remedy, ContainsText("kill -CONT 402 on host beta lets it go on"));
}

TEST_CASE("a rank of another host that says nothing, while its host answers, does not run") {
  RankView halted = busy(1, 41);
  halted.host = "beta";
  halted.is_far = halted.is_inferred = true;
  halted.heard_ago = 3.1;
  halted.state = ProcessState::halted;
  halted.activity = "backward conv2d";
  const Diagnosis diagnosis = explain_wait(group_of({waits(0, sum(45)), halted}), 0);
  CHECK(diagnosis.blamed == std::vector{1});
  CHECK(
      diagnosis.cause ==
      "rank 1 (host beta, pid 401, does not run) does not answer in all_reduce #45 sum f32[4]; 3.1 s ago, when it was "
      "last heard of, it had finished #41, and was in backward conv2d");
  CHECK_THAT(diagnosis.remedy, ContainsText("kill -CONT 401 on host beta"));
}

TEST_CASE("a host of which nothing is heard is said to be silent") {
  const GroupView group = group_of({waits(0, sum(45)), silent(1, 41, "beta")});
  const Diagnosis diagnosis = explain_wait(group, 0);
  CHECK(diagnosis.cause ==
        "rank 1 (host beta, pid 401) does not answer in all_reduce #45 sum f32[4], for 2.9 s; host beta has not been "
        "heard of for 3.1 s");
  CHECK_THAT(diagnosis.remedy, ContainsText("a link to it, may be down"));
  CHECK_THAT(text_of(group), ContainsText("rank 1 (host beta, pid 401) has not been heard of for 3.1 s\n"));
}

// Of several sums at a time, as of the buckets of gradients.
TEST_CASE("a rank that waits in an earlier collective is not to blame, but whom it waits for there") {
  const RankView cut_off = silent(2, 88, "gamma");
  for (const std::uint64_t started : {90U, 91U}) {
    RankView held_up = waits(1, sum(90));
    held_up.started = started;
    const Diagnosis of_silent = explain_wait(group_of({waits(0, sum(91)), held_up, cut_off}), 0);
    CHECK(of_silent.blamed == std::vector{2});
    CHECK_THAT(of_silent.cause, ContainsText("rank 2 (host gamma, pid 402) does not answer in all_reduce #90"));
    const Diagnosis of_late = explain_wait(group_of({waits(0, sum(91)), held_up, busy(2, 89)}), 0);
    CHECK(of_late.blamed == std::vector{2});
    CHECK_THAT(of_late.cause,
               ContainsText(fmt::format("rank 2 (host h, pid 402) has not entered all_reduce #{} ", started)));
    // Rank 1 has just come to #90, which all others have done.
    const Diagnosis of_next = explain_wait(group_of({waits(0, sum(91)), held_up, busy(2, 90)}), 0);
    CHECK(of_next.blamed.back() == 2);
  }
}

TEST_CASE("a look at ranks that may be well gives no verdict and no remedy") {
  const auto look = [](double time, const RankView& other) {
    GroupView group = group_of({waits(0, sum(45)), other});
    for (RankView& rank : group.ranks) rank.waiting_time = time;
    return explain_look(group);
  };
  // A rank that computes.
  const auto moment = look(0.2, busy(1, 44));
  REQUIRE(moment.has_value());
  CHECK(text_of(*moment) == "rank 0 waits for rank 1 at the moment\n");
  CHECK_THAT(look(1.5, busy(1, 44))->cause, ContainsText("rank 1 (host h, pid 401) has not entered all_reduce #45"));
  CHECK_FALSE(explain_look(group_of({busy(0, 44), busy(1, 44)})).has_value());
  // All have entered.
  CHECK_FALSE(look(0.2, waits(1, sum(45))).has_value());
  const auto all = look(1.5, waits(1, sum(45)));
  REQUIRE(all.has_value());
  CHECK(all->cause == "rank 0 has waited in all_reduce #45 sum f32[4] for 1.5 s, as all others do");
  CHECK(all->remedy.empty());
  // What their own watchdogs have found holds.
  RankView alarmed = waits(1, sum(45));
  alarmed.has_found_fault = true;
  CHECK_THAT(look(0.2, alarmed)->remedy, ContainsText("a message may be lost"));
  // News of another host may be older than a short wait.
  RankView far = busy(1, 41);
  far.is_far = true;
  CHECK_FALSE(look(0.2, far).has_value());
  CHECK_THAT(look(1.5, far)->cause, ContainsText("has not entered all_reduce #45"));
  // Long work may take long; a rank that has ended is a fault at once.
  RankView writes = busy(1, 44);
  writes.is_in_long_work = true;
  CHECK(look(1.5, writes)->remedy.empty());
  RankView gone = busy(1, 44);
  gone.state = ProcessState::ended;
  CHECK_THAT(look(0.0, gone)->cause, ContainsText("rank 1 (host h, pid 401, ended) has not entered"));
  // Two ranks in the middle of an exchange of messages.
  GroupView exchange = group_of({waits(0, receive_from(1)), waits(1, receive_from(0))});
  for (RankView& rank : exchange.ranks) rank.waiting_time = 0.2;
  CHECK_FALSE(explain_look(exchange).has_value());
}

TEST_CASE("the remedy for a rank that has left, or waits for a message, is not a longer deadline") {
  RankView left = busy(1, 5);
  left.started = 6;
  left.collectives.push_back(sum(6));
  left.end = RankEnd::left;
  const Diagnosis early = explain_wait(group_of({waits(0, sum(6)), left}), 0);
  CHECK(early.blamed == std::vector{1});
  CHECK_THAT(early.cause,
             ContainsText("rank 1 (host h, pid 401) has begun all_reduce #6 sum f32[4], and did not end it") &&
                 ContainsText("and has left the group"));
  CHECK_THAT(early.remedy, ContainsText("before the group is dropped"));
  const OperationView send{.number = 1, .kind = CollectiveKind::send, .dtype = DType::f32, .peer = 1, .count = 4};
  const Diagnosis unmatched = explain_wait(group_of({waits(0, send), waits(1, sum(6))}), 1);
  CHECK(unmatched.blamed == std::vector{0});
  CHECK_THAT(unmatched.cause, ContainsText("rank 0 (host h, pid 400) has not entered all_reduce #6"));
  CHECK_THAT(unmatched.remedy,
             ContainsText("rank 0 waits for a message that rank 1 does not answer: each receive() needs a send()"));
}

TEST_CASE("a rank that has told what is wrong, and ended, is not the cause") {
  RankView told = waits(0, sum(6)), stopped = busy(1, 5);
  told.has_found_fault = true;
  told.state = ProcessState::ended;
  stopped.state = ProcessState::stopped;
  const GroupView group = group_of({told, stopped, waits(2, sum(6))});
  CHECK_FALSE(find_fault(group).has_value());
  CHECK(explain_wait(group, 2).blamed == std::vector{1});
  CHECK(is_teller(group, 2));
  CHECK_FALSE(is_teller(group, 0));
}
