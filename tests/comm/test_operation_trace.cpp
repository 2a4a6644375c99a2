// The steps of collectives on a timeline: which there are, and when.
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/comm/schedules/schedule.h"
#include "tandem/comm/transports/shared_memory/window.h"
#include "tandem/core/out.h"
#include "tandem/core/timeline.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

using namespace tandem;
using namespace tandem::comm;

namespace {

using Steps = std::vector<CommunicationStep>;

/// What ranks that are threads record of their all-reduces, by rank and in their order.
std::map<int, std::vector<CommunicationEvent>> all_reduces_of(int ranks, const NativeOptions& options,
                                                              const std::function<void(ProcessGroup&)>& body) {
  start_timeline();
  run_thread_ranks(ranks, options, body);
  std::map<int, std::vector<CommunicationEvent>> of_rank;
  for (CommunicationEvent& event : stop_timeline().communication)
    if (event.name.starts_with("all_reduce")) of_rank[event.rank].push_back(std::move(event));
  return of_rank;
}

NativeOptions by_messages(const std::string& algorithm) { return native_options("threads", algorithm); }

std::function<void(ProcessGroup&)> sum_of(std::int64_t count) {
  return [count](ProcessGroup& group) {
    const Tensor tensor = Tensor::full({count}, 1.0);
    group.all_reduce(Out(tensor));
  };
}

std::vector<std::string> actions_of(const CommunicationEvent& event) {
  std::vector<std::string> actions;
  for (const CommunicationStep& step : event.steps) actions.emplace_back(step.action);
  return actions;
}

/// Every step lies within the event, and has no negative times.
void check_times(const CommunicationEvent& event) {
  for (const CommunicationStep& step : event.steps) {
    CHECK((step.wait_ns >= 0 && step.copy_ns >= 0 && step.reduce_ns >= 0));
    CHECK(step.begin_ns >= event.begin_ns);
    CHECK(step.end_ns() <= event.begin_ns + event.duration_ns);
  }
}

}  // namespace

TEST_CASE("trace: a rank of a ring takes 2(N - 1) steps, a message to its right and one from its left in each") {
  for (const int ranks : {2, 3, 5}) {
    const std::int64_t count = 60 * ranks;  // a segment for each chunk
    const auto all = all_reduces_of(ranks, by_messages("ring"), sum_of(count));
    REQUIRE(all.size() == static_cast<std::size_t>(ranks));
    for (const auto& [rank, events] : all) {
      INFO("rank " << rank << " of " << ranks);
      REQUIRE(events.size() == 1);
      const CommunicationEvent& event = events.front();
      CHECK(event.name == fmt::format("all_reduce sum f32[{}]", count));
      CHECK((event.algorithm == "ring" && event.bytes == 4 * count));
      CHECK(event.number == all.at(0).front().number);
      check_times(event);
      std::set<int> sent, received;  // rounds
      int reduced = 0;
      for (const CommunicationStep& step : event.steps) {
        const bool is_send = step.action == "send";
        CHECK((is_send ? sent : received).insert(step.round).second);
        CHECK(step.peer == (rank + (is_send ? 1 : ranks - 1)) % ranks);
        CHECK((step.segment == 0 && step.bytes == 4 * count / ranks));
        if (step.action == "reduce") ++reduced;
      }
      const auto rounds = static_cast<std::size_t>(2 * (ranks - 1));
      CHECK((sent.size() == rounds && received.size() == rounds));
      // As in the tables of algorithms, the first one is 1.
      CHECK((*sent.begin() == 1 && *received.begin() == 1));
      CHECK((*sent.rbegin() == 2 * ranks - 2 && *received.rbegin() == 2 * ranks - 2));
      CHECK(reduced == ranks - 1);
    }
  }
}

TEST_CASE("trace: chunks of several segments are told apart, and nothing arrives before it was sent") {
  for (const char* const algorithm : {"ring", "direct", "halving-doubling", "double-tree"}) {
    INFO(algorithm);
    NativeOptions options = by_messages(algorithm);
    options.segments = {.segment_bytes = 256, .depth = 3};
    const auto all = all_reduces_of(4, options, sum_of(1000));
    using Message = std::tuple<int, int, int, int, int>;  // from, to, round, chunk, segment
    std::map<Message, const CommunicationStep*> sent;
    for (const auto& [rank, events] : all)
      for (const CommunicationStep& step : events.at(0).steps)
        if (step.action == "send")
          CHECK(sent.emplace(Message{rank, step.peer, step.round, step.chunk, step.segment}, &step).second);
    std::size_t received = 0;
    int segments = 0;
    for (const auto& [rank, events] : all) {
      check_times(events.at(0));
      for (const CommunicationStep& step : events.at(0).steps) {
        segments = std::max(segments, step.segment + 1);
        if (step.action == "send") continue;
        const auto match = sent.find({step.peer, rank, step.round, step.chunk, step.segment});
        REQUIRE(match != sent.end());
        CHECK(match->second->bytes == step.bytes);
        CHECK(step.end_ns() >= match->second->begin_ns);
        ++received;
      }
    }
    CHECK((received == sent.size() && segments > 1));
  }
}

TEST_CASE("trace: steps through shared memory follow each other, and waiting is between them") {
  constexpr std::int64_t kSegment = Window::kSegmentBytes / 4;
  // Else threads see each other's data where they are.
  const NativeOptions through_window{.name = "threads", .single_copy = SingleCopy::off};
  const auto all = all_reduces_of(3, through_window, [](ProcessGroup& group) {
    sum_of(100)(group);                // in the cells
    sum_of(2 * kSegment + 30)(group);  // by segments
    const Tensor shared = group.shared_zeros({kSegment});
    group.all_reduce(Out(shared));  // in place
  });
  REQUIRE(all.size() == 3);
  for (const auto& [rank, events] : all) {
    INFO("rank " << rank);
    REQUIRE(events.size() == 3);
    CHECK(actions_of(events[0]) == std::vector<std::string>{"offer", "wait for all", "reduce"});
    CHECK(actions_of(events[2]) == std::vector<std::string>{"offer", "wait for all", "reduce", "wait for all"});
    std::map<std::pair<std::string, int>, std::int64_t> bytes;  // of segments
    for (const CommunicationStep& step : events[1].steps) {
      if (step.segment < 0) continue;
      const bool is_new = bytes.emplace(std::pair(std::string(step.action), step.segment), step.bytes).second;
      CHECK(is_new);
      CHECK((step.action == "reduce" ? step.copy_ns == 0 : step.reduce_ns == 0));
    }
    CHECK(bytes.size() == 9);  // three of each of three segments
    CHECK(bytes.at({"copy in", 2}) == 4 * 20);
    CHECK(bytes.at({"reduce", 2}) == 4 * 10);
    CHECK(bytes.at({"take", 2}) == 4 * 20);
    for (const CommunicationEvent& event : events) {
      check_times(event);
      CHECK((event.algorithm == "shared-memory" && event.number > 0));
      std::int64_t end = event.begin_ns;
      for (const CommunicationStep& step : event.steps) {
        CHECK(step.begin_ns == end);
        CHECK(step.peer == -1);
        end = step.end_ns();
      }
    }
    CHECK(events[0].number < events[1].number);
  }
}

TEST_CASE("trace: an operation that waits for another one in shared memory has waited, and not worked") {
  constexpr std::int64_t kMs = 1'000'000;
  const auto all = all_reduces_of(2, {.name = "threads"}, [](ProcessGroup& group) {
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const Tensor first = Tensor::full({100}, 1.0), second = Tensor::full({100}, 1.0);
    const auto one = group.all_reduce_async(Out(first)), other = group.all_reduce_async(Out(second));
    one->wait();
    other->wait();
  });
  const CommunicationStep& offer = all.at(0).at(1).steps.at(0);
  CHECK(offer.action == "offer");
  CHECK(offer.wait_ns > 50 * kMs);
  CHECK(offer.wait_ns > offer.copy_ns);
}

TEST_CASE("trace: nothing is recorded while no timeline is") {
  run_thread_ranks(2, sum_of(100));
  const auto before = all_reduces_of(1, by_messages("ring"), [](ProcessGroup&) {});
  CHECK(before.empty());
  start_timeline();
  run_thread_ranks(2, [](ProcessGroup& group) {
    sum_of(100)(group);
    group.barrier();
    if (group.rank() == 0) stop_timeline();
    group.barrier();
    sum_of(100)(group);
  });
  CHECK(stop_timeline().communication.empty());
}
