// Groups with a progress thread: ranks that are threads, and the choice.
#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/core/out.h"
#include "tests/comm/collective_checks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

using namespace std::chrono_literals;

constexpr std::array<std::string_view, 3> kWays{"shared-memory", "ring", "by-cost"};

/// Numbers whose sums depend on the order in which they are added up.
Tensor uneven_numbers(int rank, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(1.0f / static_cast<float>(1 + (i * 31 + rank * 17) % 1009));
  return Tensor::from(values, {count});
}

/// A backend whose works move on by polls, and which is told `places` and obstacles by the ranks of its group.
class PolledBackend final : public Backend {
 public:
  PolledBackend(std::vector<std::string> places, std::string obstacle)
      : places_(std::move(places)), obstacle_(std::move(obstacle)) {}
  std::string_view name() const override { return "polled"; }
  Place place() const override { return {.size = static_cast<int>(places_.size())}; }
  std::unique_ptr<Work> start(const Collective&) override { return done_work(); }
  std::vector<std::string> all_gather_bytes(std::string_view) override {
    std::vector<std::string> all;
    for (const std::string& each : places_) all.push_back(each + "\n" + (all.empty() ? "" : obstacle_));
    return all;
  }
  std::unique_ptr<Backend> subgroup(std::span<const int>) override { fail("it does not part"); }
  bool moves_by_polls() const override { return true; }

 private:
  std::vector<std::string> places_;
  std::string obstacle_;  // of the last rank
};

const std::vector<std::string> kRoomy{"0 1 0 1 2 3", "0 1 0 1 2 3"}, kFull{"0 1 0 1", "0 1 0 1"}, kAlone{"0 1 0 1"};

}  // namespace

TEST_CASE("an all-reduce ends though one rank does not call its group", "[threads]") {
  // More than goes through at once: it needs both ranks again and again.
  constexpr std::int64_t kCount = 2 << 20;
  for (const std::string_view way : kWays) {
    for (const int waiting : {0, 1}) {
      std::atomic<bool> may_go_on = false;
      std::array<bool, 2> is_done{};
      std::array<double, 2> sums{};
      run_thread_ranks(2, native_options("threads", way), [&](ProcessGroup& group) {
        group.set_progress("thread");
        const auto rank = static_cast<std::size_t>(group.rank());
        const Tensor ones = Tensor::full({kCount}, 1.0);
        const auto work = group.all_reduce_async(Out(ones));
        if (group.rank() == waiting) {
          is_done[rank] = work->wait_for(10s);
          may_go_on = true;
        } else {
          while (!may_go_on) std::this_thread::sleep_for(1ms);
          is_done[rank] = work->wait_for(is_done[static_cast<std::size_t>(waiting)] ? 10s : 0s);
        }
        sums[rank] = ones.narrow(0, kCount - 1, 1).item();
      });
      CAPTURE(way, waiting);
      CHECK(is_done == std::array{true, true});
      CHECK(sums == std::array{2.0, 2.0});
    }
  }
}

TEST_CASE("an all-reduce that nobody polls is done at the first look", "[threads]") {
  for (const std::string_view way : kWays) {
    std::array<bool, 2> is_done{};
    run_thread_ranks(2, native_options("threads", way), [&](ProcessGroup& group) {
      group.set_progress("thread");
      const Tensor ones = Tensor::full({1 << 18}, 1.0);
      group.barrier();
      const auto work = group.all_reduce_async(Out(ones));
      std::this_thread::sleep_for(1s);  // much longer than it takes, so that sanitizers and busy machines do
      is_done[static_cast<std::size_t>(group.rank())] = work->poll();
    });
    CAPTURE(way);
    CHECK(is_done == std::array{true, true});
  }
}

TEST_CASE("collectives are the same with a progress thread, and sums have the same bits", "[threads]") {
  for (const std::string_view way : kWays) {
    for (const int ranks : {2, 3}) {
      std::vector<std::string> faults(static_cast<std::size_t>(ranks));
      run_thread_ranks(ranks, native_options("threads", way), [&](ProcessGroup& group) {
        std::string& fault = faults[static_cast<std::size_t>(group.rank())];
        group.set_progress("thread");
        fault = fault_of_all_collectives(group, 101);
        if (fault.empty() && ranks == 3) fault = fault_of_split(group);
        std::vector<std::vector<float>> sums;
        for (const std::string_view progress : {"thread", "poll"}) {
          group.set_progress(progress);
          std::vector<Tensor> tensors;
          std::vector<std::unique_ptr<Work>> works;
          for (const std::int64_t count : {7, 20011, 300007}) {
            tensors.push_back(uneven_numbers(group.rank(), count));
            works.push_back(group.all_reduce_async(Out(tensors.back()), ReduceOp::average));
          }
          if (group.rank() == 0) std::this_thread::sleep_for(2ms);
          for (std::size_t i = works.size(); i-- > 0;) works[i]->wait();
          for (const Tensor& tensor : tensors) sums.push_back(tensor.to_vector<float>());
        }
        for (std::size_t i = 0; i < 3; ++i)
          if (sums[i] != sums[i + 3]) fault += fmt::format("sums of {} numbers differ", sums[i].size());
      });
      CAPTURE(way, ranks);
      CHECK(faults == std::vector<std::string>(static_cast<std::size_t>(ranks)));
    }
  }
}

TEST_CASE("a rank's error reaches works that the thread moves on, and nothing hangs", "[threads]") {
  for (const std::string_view way : kWays) {
    std::string told;
    std::atomic<bool> has_started = false;
    const std::string error = error_of([&] {
      run_thread_ranks(2, native_options("threads", way), [&](ProcessGroup& group) {
        group.set_progress("thread");
        const Tensor ones = Tensor::full({1 << 20}, 1.0);
        while (group.rank() == 1 && !has_started) std::this_thread::yield();
        if (group.rank() == 1) fail("label 12 is out of range");
        const auto work = group.all_reduce_async(Out(ones));
        has_started = true;
        std::this_thread::sleep_for(20ms);
        told = error_of([&] { work->wait(); });
        fail("{}", told);
      });
    });
    CAPTURE(way);
    CHECK(error == "rank 1: label 12 is out of range");
    CHECK_THAT(told, ContainsText("rank 1 ended by an error"));
  }
}

TEST_CASE("groups end with works under way on the thread", "[threads]") {
  for (const std::string_view way : kWays) {
    for (int round = 0; round < 20; ++round) {
      run_thread_ranks(2, native_options("threads", way), [&](ProcessGroup& group) {
        group.set_progress("thread");
        const auto part = group.split(0);
        const Tensor ones = Tensor::full({1 << 16}, 1.0);
        const auto dropped = part->all_reduce_async(Out(ones));
        if (round % 2 == 0) group.barrier();
      });
    }
  }
  SUCCEED("none waits for another");
}

TEST_CASE("who moves works on can be chosen anew, and groups that are split off do the same", "[threads]") {
  std::array<std::string, 2> seen;
  run_thread_ranks(2, [&](ProcessGroup& group) {
    std::string& text = seen[static_cast<std::size_t>(group.rank())];
    text += group.progress();
    for (const std::string_view how : {"thread", "thread", "poll", "thread"}) {
      group.set_progress(how);
      const auto part = group.split(0);
      const Tensor ones = Tensor::full({3}, 1.0);
      part->all_reduce(Out(ones));
      text += fmt::format(" {}/{}/{}", group.progress(), part->progress(), ones.narrow(0, 0, 1).item());
    }
  });
  CHECK(seen[0] == "poll thread/thread/2 thread/thread/2 poll/poll/2 thread/thread/2");
  CHECK(seen[1] == seen[0]);
}

TEST_CASE("who moves works on is not chosen anew while the thread has some", "[threads]") {
  std::array<std::string, 2> errors;
  std::atomic<int> refused = 0;
  run_thread_ranks(2, [&](ProcessGroup& group) {
    group.set_progress("thread");
    const Tensor number = Tensor::full({1}, 1.0 + group.rank());
    const int other = 1 - group.rank();
    const auto work = group.receive_async(Out(number), other);
    for (const std::string_view how : {"poll", "thread"})
      errors[static_cast<std::size_t>(group.rank())] += error_of([&] { group.set_progress(how); }) + "; ";
    ++refused;
    while (refused < 2) std::this_thread::yield();
    group.send(Tensor::full({1}, 5.0), other);
    work->wait();
    group.set_progress("poll");
    errors[static_cast<std::size_t>(group.rank())] += fmt::format("{} {}", group.progress(), number.item());
  });
  const std::string refusal = "set_progress: works are under way; wait for them first; ";
  CHECK(errors[0] == refusal + refusal + "poll 5");
  CHECK(errors[1] == errors[0]);
}

TEST_CASE("a thread is chosen where each rank has a core for it to spare") {
  const auto chosen = [](std::string_view how, const std::vector<std::string>& places, const std::string& obstacle) {
    ProcessGroup group(std::make_unique<PolledBackend>(places, obstacle));
    group.set_progress(how);
    return fmt::format("{}{}{}", group.progress(), group.notice().empty() ? "" : ": ", group.notice());
  };
  CHECK(chosen("auto", kRoomy, "") == "thread");
  CHECK(chosen("auto", kRoomy, "one at a time") == "poll: no progress thread: backend polled: one at a time");
  CHECK(chosen("auto", kFull, "") == "poll");
  CHECK(chosen("auto", kFull, "one at a time") == "poll");  // nothing else would be expected
  CHECK(chosen("auto", kAlone, "") == "poll");              // waits for nobody
  CHECK(chosen("thread", kFull, "") == "thread");
  CHECK(chosen("poll", kRoomy, "") == "poll");
}

TEST_CASE("a thread that cannot be is refused, and so is another word") {
  const auto error_of_choice = [](std::string_view how, std::unique_ptr<Backend> backend) {
    ProcessGroup group(std::move(backend));
    std::string text = "no AgreedError";
    try {
      group.set_progress(how);
    } catch (const AgreedError& error) {
      text = error.what();
    }
    return fmt::format("{} / {}", text, group.progress());
  };
  CHECK(error_of_choice("thread", std::make_unique<PolledBackend>(kFull, "one at a time")) ==
        "progress thread: backend polled: one at a time; choose progress poll / poll");
  CHECK(error_of_choice("thread", make_self_backend()) ==
        "progress thread: is for backends native, threads and mpi, and self needs none; choose progress auto / ");
  CHECK_THAT(error_of_choice("tread", make_self_backend()), ContainsText("tread") && ContainsText("thread"));
  ProcessGroup self(make_self_backend());
  for (const std::string_view how : {"auto", "poll"}) {
    self.set_progress(how);
    CHECK(self.progress().empty());
  }
}
