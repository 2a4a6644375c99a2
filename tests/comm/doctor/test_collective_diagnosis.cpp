// Who is named of several ranks that others wait for, or that wait themselves.
#include "tandem/comm/doctor/diagnosis.h"

#include "tests/comm/doctor/rank_views.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

TEST_CASE("a rank that has told what is wrong is not the cause, wherever it was") {
  const RankView stopped = in_state(busy(1, 5), ProcessState::stopped);
  for (RankView told : {busy(0, 5), waits(0, sum(6))}) {
    told.has_found_fault = true;
    told.state = ProcessState::ended;
    for (const RankView& culprit : {stopped, in_state(waits(1, sum(6)), ProcessState::stopped)})
      CHECK(explain_wait(group_of({told, culprit, waits(2, sum(6))}), 2).blamed == std::vector{1});
    // It has told of something that this rank does not see.
    const Diagnosis unseen = explain_wait(group_of({told, busy(1, 6), waits(2, sum(6))}), 2);
    CHECK(unseen.blamed.empty());
    CHECK_THAT(unseen.cause, ContainsText("rank 0 (host h, pid 400, ended) has told what is wrong, and ended"));
    CHECK(unseen.lines == std::vector<std::string>{"rank 2 waits in all_reduce #6 sum f32[4]"});
  }
  RankView tells = busy(0, 5);
  tells.has_found_fault = true;
  CHECK(explain_wait(group_of({tells, busy(1, 5)}), 1).cause == "rank 0 (host h, pid 400) has told what is wrong");
  // So it is where others wait for each other as they do at any time: it waits in another group.
  const auto alarm = explain_alarm(group_of({tells, busy(1, 5), waits(2, sum(6))}));
  REQUIRE(alarm.has_value());
  CHECK(alarm->blamed.empty());
  CHECK(alarm->cause == "rank 0 (host h, pid 400) has told what is wrong");
  RankView waits_here = waits(0, sum(6));
  waits_here.has_found_fault = true;
  CHECK_FALSE(explain_alarm(group_of({waits_here, busy(1, 5), tells})).has_value());
  CHECK_FALSE(explain_alarm(group_of({busy(0, 5), waits(1, sum(6))})).has_value());
  CHECK_FALSE(explain_alarm(group_of({tells, stopped, waits(2, sum(6))})).has_value());
}

TEST_CASE("a rank that does long work is not to blame where another one is") {
  RankView writes = busy(0, 5), reads = busy(3, 5);
  writes.is_in_long_work = true;
  writes.activity = "checkpoint";
  const Diagnosis late = explain_wait(group_of({writes, waits(1, sum(6)), waits(2, sum(6)), reads}), 1);
  CHECK(late.blamed == std::vector{3});
  CHECK_THAT(late.cause, ContainsText("rank 3 (host h, pid 403) has not entered all_reduce #6"));
  CHECK_THAT(late.lines.front(), ContainsText("nor has rank 0") && ContainsText("checkpoint, which may take long"));
  // One rank has waited for long work for longer than another one waits for something else.
  RankView patient = waits(1, receive_from(0));
  patient.waiting_time = 50.0;
  CHECK(longest_waiting(group_of({writes, patient, waits(2, receive_from(3)), reads})) == 2);
  CHECK(longest_waiting(group_of({writes, patient, busy(2, 5), reads})) == 1);
}

TEST_CASE("of late ranks one that computes is named before one that waits for it") {
  RankView computes = busy(2, 5);
  computes.activity = "data";
  const Diagnosis message = explain_wait(group_of({waits(0, sum(6)), waits(1, receive_from(2)), computes}), 0);
  CHECK(message.blamed == std::vector{2});
  CHECK_THAT(message.cause,
             ContainsText("rank 2 (host h, pid 402) has not sent to rank 1") && ContainsText("and is in data"));
  // In a collective that all others have done: what holds that rank up is not known.
  const Diagnosis earlier = explain_wait(group_of({waits(0, sum(7)), waits(1, sum(6)), busy(2, 6)}), 0);
  CHECK(earlier.blamed == std::vector{2});
  CHECK_THAT(earlier.lines.front(), ContainsText("nor has rank 1"));
}

TEST_CASE("a rank that waits for another operation of the same number does not wait in a collective") {
  OperationView sixth = receive_from(0);
  sixth.number = 6;
  const Diagnosis diagnosis = explain_wait(group_of({waits(0, sum(6)), has_begun(waits(1, sixth), 6)}), 0);
  CHECK(diagnosis.blamed == std::vector{1});
  CHECK_THAT(diagnosis.cause, ContainsText("rank 1 (host h, pid 401) is in all_reduce #6 sum f32[4], and does not go "
                                           "on with it (nor waits for it)") &&
                                  ContainsText("waits in receive of f32[4] from rank 0"));
  // In a later collective it goes on with the earlier one.
  RankView later = waits(1, sum(7));
  later.finished = 5;
  later.step = "step 1 of ring";
  CHECK(explain_wait(group_of({has_begun(waits(0, sum(6)), 7), later}), 0).blamed.empty());
  const Diagnosis of_busy =
      explain_wait(group_of({has_begun(waits(0, sum(6)), 7), later, has_begun(busy(2, 5), 7)}), 0);
  CHECK(of_busy.blamed == std::vector{2});
}

TEST_CASE("a rank that has done its part, and cannot go on, is named where nobody else is to blame") {
  for (const ProcessState state : {ProcessState::stopped, ProcessState::ended}) {
    const Diagnosis diagnosis =
        explain_wait(group_of({waits(0, sum(6)), in_state(busy(1, 6), state), waits(2, sum(6))}), 0);
    CHECK(diagnosis.blamed == std::vector{1});
    CHECK_THAT(diagnosis.cause, ContainsText("has finished all_reduce #6 sum f32[4], which does not end for others"));
  }
}

TEST_CASE("of two faults both are told") {
  const RankView stopped = in_state(busy(2, 5), ProcessState::stopped);
  const auto killed =
      find_fault(group_of({waits(0, sum(6)), in_state(busy(1, 5), ProcessState::ended), stopped, waits(3, sum(6))}));
  REQUIRE(killed.has_value());
  CHECK(killed->blamed == std::vector{1, 2});
  CHECK_THAT(killed->cause, ContainsText("rank 1 (host h, pid 401, ended) has not entered"));
  CHECK_THAT(killed->lines.front(), ContainsText("rank 2 (host h, pid 402, stopped)"));
  const Diagnosis cycle = explain_wait(group_of({waits(0, receive_from(1)), waits(1, receive_from(0)), stopped}), 0);
  CHECK(cycle.blamed == std::vector{0, 1});
  CHECK(cycle.lines.back() == "rank 2 (host h, pid 402, stopped) does not go on either");
}

TEST_CASE("a rank that an error has ended within a collective is a fault as one that was killed there") {
  RankView failed = in_state(has_begun(busy(1, 5), 6), ProcessState::ended);
  failed.end = RankEnd::failed;
  const auto fault = find_fault(group_of({waits(0, sum(6)), failed}));
  REQUIRE(fault.has_value());
  CHECK_FALSE(fault->is_final);
  CHECK_THAT(fault->cause, ContainsText("did not end all_reduce #6") && ContainsText("has left the group by an error"));
  failed.state = ProcessState::runs;  // it may still go on with it
  CHECK_FALSE(find_fault(group_of({waits(0, sum(6)), failed})).has_value());
}

TEST_CASE("a rank that waits in another group is not to blame where one computes") {
  RankView elsewhere = busy(0, 5);
  elsewhere.waits_elsewhere = true;
  elsewhere.activity = "all_reduce #2 sum f32[4] of another group";
  const Diagnosis diagnosis = explain_wait(group_of({elsewhere, busy(1, 5), waits(2, sum(6))}), 2);
  CHECK(diagnosis.blamed == std::vector{1});
  CHECK_THAT(diagnosis.lines.front(),
             ContainsText("nor has rank 0") && ContainsText("is in all_reduce #2 sum f32[4] of another group"));
  const Diagnosis alone = explain_wait(group_of({elsewhere, busy(1, 6), waits(2, sum(6))}), 2);
  CHECK(alone.blamed == std::vector{0});
  CHECK(alone.remedy == "rank 0 waits in another group: look at what is told there");
}

TEST_CASE("ranks of a group that was split off are named by both their numbers") {
  GroupView group = group_of({busy(0, 5), waits(1, sum(6))});
  group.ranks[0].whole_rank = 3;
  group.ranks[1].whole_rank = 1;
  CHECK_THAT(explain_wait(group, 1).cause, ContainsText("rank 0 (rank 3 of all, host h, pid 400) has not entered"));
  CHECK_THAT(text_of(group), ContainsText("rank 1 (host h, pid 401): "));
  CHECK(numbers_of(group) == "ranks 0, 1 of this group are ranks 3, 1 of all");
  group.ranks[0].whole_rank = 0;
  CHECK(numbers_of(group).empty());
  CHECK(numbers_of(group_of({busy(0, 5)})).empty());
}
