// Groups whose messages arrive as late as on a network that is simulated, in real time.
#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/native/native_backend.h"
#include "tandem/comm/backends/native/virtual_ranks.h"
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/comm/cost/algorithm_choice.h"
#include "tandem/comm/cost/choose_algorithms.h"
#include "tandem/comm/cost/network_costs.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/comm/transports/simulated/real_time_network.h"
#include "tests/comm/test_collectives.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::comm;
using tandem::test::error_of;

namespace {

/// Seconds of the fastest of some all-reduces of so many floats between threads: a busy machine holds up others. A
/// wrong sum is an error.
double real_seconds(const NetworkModel& model, std::string_view algorithm, std::int64_t count) {
  using Clock = std::chrono::steady_clock;
  constexpr int kTurns = 3;
  std::vector<double> seconds;
  run_thread_ranks(model.ranks(), native_options("threads", algorithm, to_text(model)), [&](ProcessGroup& group) {
    for (int turn = 0; turn < kTurns; ++turn) {
      const Tensor tensor = Tensor::full({count}, group.rank() + 1.0);
      group.barrier();
      const Clock::time_point start = Clock::now();
      group.all_reduce(Out(tensor));
      group.barrier();  // behind the slowest
      const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
      if (group.rank() == 0) seconds.push_back(elapsed);
      const int sum = group.size() * (group.size() + 1) / 2;
      const std::vector<float> values = tensor.to_vector<float>();
      require(std::ranges::count(values, static_cast<float>(sum)) == count, "a wrong sum");
    }
  });
  return std::ranges::min(seconds);
}

/// What the virtual clock says of the same all-reduce, and of a barrier behind it.
double virtual_seconds(const NetworkModel& model, std::string_view algorithm, std::int64_t count) {
  const auto schedule = std::make_shared<const Schedule>(all_reduce_algorithm(algorithm).make(model.node_of_rank()));
  VirtualRanks ranks(model, schedule);
  std::vector<Tensor> tensors;
  for (int rank = 0; rank < model.ranks(); ++rank) tensors.push_back(Tensor::zeros({count}));
  const auto seconds = [&](CollectiveKind kind) {
    return ranks.run([&](int rank) { return test::in_place(kind, tensors[static_cast<std::size_t>(rank)]); });
  };
  const double all_reduce = seconds(CollectiveKind::all_reduce);
  return all_reduce + seconds(CollectiveKind::barrier);
}

std::string thread_error(int ranks, std::string_view network, std::string_view algorithm = "auto") {
  return error_of(
      [&] { run_thread_ranks(ranks, native_options("threads", algorithm, network), [](ProcessGroup&) {}); });
}

}  // namespace

TEST_CASE("all-reduces in real time take about what the virtual clock says") {
  // Never less; a busy machine may take far longer.
  for (const char* const text : {"alpha=4ms beta=100MB hosts=2", "alpha=4ms beta=100MB hosts=4",
                                 "alpha=8ms beta=100MB local-alpha=1ms local-beta=1GB hosts=2x2"}) {
    const NetworkModel model = parse_network_model(text);
    for (const char* const algorithm : {"ring", "halving-doubling", "two-level"}) {
      CAPTURE(text, algorithm);
      const double formula = virtual_seconds(model, algorithm, 100000),
                   seconds = real_seconds(model, algorithm, 100000);
      CHECK(seconds > 0.95 * formula);
      CHECK(seconds < 4.0 * formula);
    }
  }
}

TEST_CASE("ranks of one machine are on the hosts of the simulated network") {
  const std::string text = "alpha=20ms local-alpha=1us hosts=2x2";
  const NetworkModel model = parse_network_model(text);
  CHECK(real_seconds(model, "two-level", 4) < real_seconds(model, "ring", 4));  // 2 latencies beside 6
  std::string name, network;
  MessageCosts costs;
  std::vector<AlgorithmChoice> choices;
  run_thread_ranks(4, native_options("threads", "auto", text), [&](ProcessGroup& group) {
    if (group.rank() > 0) return;
    name = group.algorithm();
    network = group.network();
    costs = group.message_costs();
    choices = group.algorithm_choices();
  });
  CHECK(name == "by-cost");
  CHECK(network == to_text(model));
  CHECK(costs.between_hosts == CostCurve::line(20e-3, 1.1e9));
  CHECK(costs.combine == usual_message_costs().combine);
  CHECK(choices == choose_algorithms(model.node_of_rank(), real_time_costs_of(model)));
  CHECK(choices != choose_algorithms(std::vector<int>(4, 0), real_time_costs_of(model)));  // of one host
}

TEST_CASE("groups that are split off stay on the simulated network, also with a thread of their own") {
  using Clock = std::chrono::steady_clock;
  std::atomic<int> early = 0, wrong = 0;
  run_thread_ranks(4, native_options("threads", "auto", "alpha=10ms"), [&](ProcessGroup& group) {
    const auto half = group.split(group.rank() % 2);
    group.set_progress("thread");
    half->set_progress("thread");
    const Clock::time_point start = Clock::now();
    for (int turn = 0; turn < 3; ++turn) {
      const Tensor mine = Tensor::full({1000}, 1.0), ours = Tensor::full({1000}, 1.0);
      const auto of_half = half->all_reduce_async(Out(mine));
      const auto of_all = group.all_reduce_async(Out(ours));
      of_half->wait();
      of_all->wait();
      wrong += mine.to_vector<float>()[999] != 2.0F || ours.to_vector<float>()[0] != 4.0F;
    }
    // What the other rank sent first may have been on its way before this rank began.
    early += Clock::now() - start < std::chrono::milliseconds(20);
    wrong += half->network().empty() || half->algorithm() != "by-cost";
  });
  CHECK(early == 0);
  CHECK(wrong == 0);
}

TEST_CASE("a simulated network that ranks cannot be on is one error of all") {
  CHECK(thread_error(2, "alpha=1us hosts=2x4") ==
        "network: hosts=2x4 are 8 ranks, and here are 2; start 8, or leave hosts out");
  CHECK(thread_error(2, "hosts=2 link=shared") ==
        "network: link=shared is for a virtual clock; leave it out in real time");
  CHECK(thread_error(2, "lose=0-2") == "network: lose=0-2 names a rank beyond the 2 that there are");
  CHECK(thread_error(2, "alpha=1") == "network: alpha=1 is no time; write it as 50us, with ns, us, ms or s");
  CHECK(thread_error(2, "alpha=1us", "shared-memory") ==
        "algorithm shared-memory: sends no messages that a simulated network could hold up; choose auto, or one of "
        "messages");
  CHECK_THROWS_AS(run_thread_ranks(2, native_options("threads", "ring", "hosts=3"), [](ProcessGroup&) {}), AgreedError);
}

TEST_CASE("one rank sends nothing on a simulated network, and knows what messages cost there") {
  MpiEnvironment environment;
  const auto group = make_process_group({.network = "alpha=2ms beta=1Gbit"}, environment);
  CHECK(group->name() == "self");
  CHECK(group->network() == "alpha=2ms beta=125MB local-alpha=2us local-beta=4GB hosts=1x1");
  CHECK(group->message_costs().between_hosts == CostCurve::line(2e-3, 125e6));
  CHECK(group->predicted_all_reduce_seconds(1000000).value() == Approx(2e-3 + 8e-3).epsilon(0.02));  // of two
  CHECK(make_process_group("auto", environment)->network().empty());
  CHECK_FALSE(make_process_group("auto", environment)->predicted_all_reduce_seconds(4).has_value());
  CHECK_THROWS_AS(make_process_group({.network = "hosts=2"}, environment), AgreedError);
  CHECK_THROWS_AS(make_process_group({.network = "hosts=none"}, environment), AgreedError);
  CHECK(error_of([&] { make_process_group({.backend = "gloo", .network = "hosts=1"}, environment); }) ==
        "network hosts=1: is simulated by backend native, and gloo sends messages of its own; choose backend native");
}
