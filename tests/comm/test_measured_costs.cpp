// What groups of ranks measure of their messages, and what they choose by it.
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/comm/cost/algorithm_choice.h"
#include "tandem/comm/cost/choose_algorithms.h"
#include "tandem/comm/cost/message_costs.h"
#include "tandem/comm/cost/predict.h"
#include "tandem/comm/launch/host_cores.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/core/out.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::comm;
using tandem::test::ContainsText;
using tandem::test::error_of;

TEST_CASE("ranks measure what messages cost, choose by it, and add up what they did before") {
  for (const int ranks : {2, 3, 5}) {
    std::vector<MessageCosts> all(static_cast<std::size_t>(ranks));
    std::vector<std::vector<AlgorithmChoice>> choices(all.size());
    std::vector<int> wrong(all.size()), undecided(all.size());
    run_thread_ranks(ranks, {.name = "threads", .shared_memory = false}, [&](ProcessGroup& group) {
      const auto mine = static_cast<std::size_t>(group.rank());
      const std::vector<int> all_here(static_cast<std::size_t>(ranks), 0);
      undecided[mine] += group.algorithm_choices() != choose_algorithms(all_here, usual_message_costs());  // at first
      all[mine] = group.measure_message_costs();
      group.use_message_costs(all[mine]);
      choices[mine] = group.algorithm_choices();
      for (const std::int64_t count : {1, 100, 10'000, 1'000'000}) {
        const Tensor x = Tensor::full({count}, group.rank() + 1.0);
        group.all_reduce(Out(x));
        for (const float value : x.to_vector<float>())
          wrong[mine] += value != static_cast<float>(ranks * (ranks + 1) / 2);
      }
      group.use_message_costs(group.rank() == 0 ? all[mine]
                                                : MessageCosts());  // rank 0's hold, for splits without it, too
      const auto part = group.split(group.rank() == 0 ? -1 : 0);
      if (part && part->size() > 1) {
        const std::vector<int> one_host(static_cast<std::size_t>(part->size()), 0);
        undecided[mine] += part->algorithm_choices() != choose_algorithms(one_host, all[mine]);
      }
      if (part && part->size() > 1) undecided[mine] += part->algorithm_choices().empty();
    });
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      CHECK(wrong[rank] == 0);
      CHECK(undecided[rank] == 0);
      CHECK(all[rank] == all[0]);
      CHECK(choices[rank] == choices[0]);
    }
    CHECK(all[0].within_host.points().size() >= 5);
    CHECK(all[0].within_host.at(4) > 0.0);
    CHECK(all[0].within_host.at(8 << 20) > all[0].within_host.at(4));
    CHECK(all[0].combine.at(8 << 20) > 0.0);
    CHECK(all[0].between_hosts == usual_message_costs().between_hosts);  // there is one host
    const auto candidates = candidate_algorithms(std::vector<int>(all.size(), 0)).size();
    CHECK(all[0].corrections.size() == (all[0].shared_cores == 0 ? candidates : 0));  // two cores: of two ranks
    for (const Correction& correction : all[0].corrections) {
      CHECK(correction.ranks == ranks);
      CHECK(correction.hosts == 1);
      CHECK(correction.points.size() >= 2);
      // A disturbance makes nothing take longer than more of it.
      const std::vector<int> one_host(static_cast<std::size_t>(ranks), 0);
      const Schedule schedule = all_reduce_algorithm(correction.algorithm).make(one_host);
      double before = 0.0;
      for (const CorrectionPoint& point : correction.points) {
        const double seconds = predicted_seconds(schedule, one_host, point.bytes, all[0]);
        CHECK(seconds >= before * (1.0 - 1e-9));
        before = seconds;
      }
    }
  }
}

TEST_CASE("ranks that share cores have no corrections, though each is on a simulated host of its own") {
  constexpr int kRanks = 3;
  std::vector<MessageCosts> all(kRanks);
  const NativeOptions options{.name = "threads", .network = "alpha=100us beta=10GB hosts=3"};
  run_thread_ranks(kRanks, options, [&](ProcessGroup& group) {
    all[static_cast<std::size_t>(group.rank())] = group.measure_message_costs();
  });
  const bool share_cores = shared_cores(cores_by_host(std::vector<std::string>(kRanks, place_text(0)))) > 0;
  CHECK(all[0].shared_cores == 0);  // of a simulated host
  CHECK(all[0].corrections.empty() == share_cores);
  CHECK(all[1] == all[0]);
}

TEST_CASE("a group tells by which algorithm it adds up") {
  const auto algorithm_of = [](int ranks, const NativeOptions& options) {
    std::string algorithm;
    run_thread_ranks(ranks, options, [&](ProcessGroup& group) {
      if (group.rank() == 0) algorithm = group.algorithm();
    });
    return algorithm;
  };
  CHECK(algorithm_of(2, native_options("threads", "auto")) == "shared-memory");
  CHECK(algorithm_of(2, native_options("threads", "by-cost")) == "by-cost");
  CHECK(algorithm_of(2, native_options("threads", "double-tree")) == "double-tree");
  CHECK(algorithm_of(1, native_options("threads", "double-tree")).empty());
}

TEST_CASE("a rank alone has nothing to measure, and other backends send no messages of their own") {
  run_thread_ranks(1, [](ProcessGroup& group) {
    CHECK(group.measure_message_costs() == usual_message_costs());  // one thread asserts
    CHECK(group.algorithm_choices().empty());
  });
  ProcessGroup self(make_self_backend());
  CHECK_THAT(error_of([&] { self.measure_message_costs(); }),
             ContainsText("backend self does not send messages itself"));
  CHECK(self.algorithm_choices().empty());
  CHECK(self.algorithm().empty());
}
