// Ranks that are threads: who is named where one does not do its part, and what a rank shows meanwhile.
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/comm/doctor/status_board.h"
#include "tandem/comm/doctor/watched_backend.h"
#include "tandem/comm/long_work.h"
#include "tandem/core/profiler.h"
#include "tests/comm/message_checks.h"
#include "tests/comm/twin_backend.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

using namespace std::chrono_literals;

/// What a group of three threads says that is watched with a deadline of half a second.
std::string error_of_ranks(const std::function<void(ProcessGroup&)>& body, const std::string& algorithm = "auto",
                           bool checks = false) {
  return error_of(
      [&] { run_thread_ranks(3, native_options("threads", algorithm), {.timeout = 0.5, .checks = checks}, body); });
}

void sum(ProcessGroup& group, std::int64_t count = 100) {
  const Tensor x = Tensor::full({count}, 1.0);
  group.all_reduce(Out(x));
}

}  // namespace

TEST_CASE("a thread that is late is named by the error of those that wait") {
  for (const char* const algorithm : {"auto", "ring"}) {
    CAPTURE(algorithm);
    std::atomic<bool> is_over = false;
    const std::string error = error_of_ranks(
        [&](ProcessGroup& group) {
          if (group.rank() == 1) {
            const ProfileRange range("backward conv2d");
            for (int i = 0; i < 500 && !is_over; ++i) std::this_thread::sleep_for(5ms);
          }
          try {
            sum(group);
          } catch (...) {
            is_over = true;
            throw;
          }
        },
        algorithm);
    CHECK_THAT(error, ContainsText("rank 1 (host ") && ContainsText("has not entered all_reduce #1 sum f32[100]") &&
                          ContainsText("it has finished no collective yet, and is in backward conv2d"));
  }
}

TEST_CASE("a thread that returns early is named before the deadline") {
  const auto begin = std::chrono::steady_clock::now();
  const std::string error = error_of([&] {
    run_thread_ranks(3, native_options("threads", "ring"), {.timeout = 60.0}, [](ProcessGroup& group) {
      sum(group);
      if (group.rank() != 1) sum(group);
    });
  });
  CHECK_THAT(error, ContainsText("rank 1 (host ") && ContainsText("has not entered all_reduce #2") &&
                        ContainsText("it last finished #1") && ContainsText("and has left the group"));
  CHECK(std::chrono::steady_clock::now() - begin < 30s);
}

TEST_CASE("ranks whose link is cut on a simulated network are named, also where it never stood") {
  for (const char* const algorithm : {"ring", "direct"}) {
    CAPTURE(algorithm);
    const NativeOptions options = native_options("threads", algorithm, "hosts=3 lose=1-2");
    const std::string error =
        error_of([&] { run_thread_ranks(3, options, {.timeout = 0.5}, [](ProcessGroup& group) { sum(group); }); });
    CHECK_THAT(error, ContainsText("all_reduce #1 sum f32[100], and it does not end") &&
                          ContainsText(std::string("step 1 of ") + algorithm + ", for rank 1"));
  }
}

TEST_CASE("messages that wait for each other are an error that has the cycle") {
  CHECK_THAT(error_of_ranks([](ProcessGroup& group) {
               const Tensor x = Tensor::zeros({4});
               group.receive(Out(x), (group.rank() + 1) % 3);
             }),
             ContainsText("ranks wait for each other in a cycle: "));
}

TEST_CASE("ranks that compare what they do find each difference before it does harm") {
  const auto error = [](const std::function<void(ProcessGroup&)>& wrong,
                        const std::function<void(ProcessGroup&)>& right) {
    return error_of_ranks([&](ProcessGroup& group) { (group.rank() == 2 ? wrong : right)(group); }, "ring", true);
  };
  const auto right = [](ProcessGroup& group) { sum(group); };
  const Tensor x = Tensor::zeros({100}), integers = Tensor::zeros({100}, {.dtype = DType::i32});
  const std::string others = ", and ranks 0, 1 call all_reduce #1 sum f32[100]; all ranks must call the same";
  CHECK_THAT(error([](ProcessGroup& group) { sum(group, 99); }, right),
             ContainsText("rank 2 calls all_reduce #1 sum f32[99]" + others));
  CHECK_THAT(error([&](ProcessGroup& group) { group.all_reduce(Out(integers.clone())); }, right),
             ContainsText("rank 2 calls all_reduce #1 sum i32[100]" + others));
  CHECK_THAT(error([&](ProcessGroup& group) { group.all_reduce(Out(x.clone()), ReduceOp::max); }, right),
             ContainsText("rank 2 calls all_reduce #1 max f32[100]" + others));
  CHECK_THAT(error([&](ProcessGroup& group) { group.broadcast(Out(x.clone()), 1); }, right),
             ContainsText("rank 2 calls broadcast #1 f32[100] from rank 1" + others));
  CHECK_THAT(error([&](ProcessGroup& group) { group.broadcast(Out(x.clone()), 1); },
                   [&](ProcessGroup& group) { group.broadcast(Out(x.clone()), 0); }),
             ContainsText("rank 2 calls broadcast #1 f32[100] from rank 1, and ranks 0, 1 call broadcast #1"));
  const auto all_to_all = [](std::int64_t count) {
    return [=](ProcessGroup& group) { group.all_to_all(Tensor::zeros({3, count})); };
  };
  CHECK(
      error(all_to_all(6), all_to_all(5)) ==
      "rank 0 has f32[5] for rank 2 in all_to_all #1, and rank 2 expects f32[6]; what a rank has for another one is to "
      "be what that one expects of it");
}

namespace {

/// What ranks say of `fault_of`, in a group of each way of threads, which compare what they do or do not.
template <typename FaultOf>
void check_on_threads(bool checks, const FaultOf& fault_of) {
  for (const char* const algorithm : {"auto", "ring"})
    for (const char* const progress : {"poll", "thread"})
      for (const int ranks : {2, 3}) {
        CAPTURE(algorithm, progress, ranks);
        std::vector<std::string> faults(static_cast<std::size_t>(ranks));
        run_thread_ranks(ranks, native_options("threads", algorithm), {.timeout = 20.0, .checks = checks},
                         [&](ProcessGroup& group) {
                           group.set_progress(progress);
                           faults[static_cast<std::size_t>(group.rank())] = fault_of(group);
                         });
        CHECK(faults == std::vector<std::string>(static_cast<std::size_t>(ranks)));
      }
}

}  // namespace

TEST_CASE("messages that fit arrive in their order, whether ranks compare them or not") {
  for (const bool checks : {false, true}) {
    CAPTURE(checks);
    check_on_threads(checks, fault_of_equal_messages);
  }
}

TEST_CASE("both ranks of a message that does not fit are told so, and nothing is sent") {
  check_on_threads(true, fault_of_unequal_messages);
}

TEST_CASE("a message that does not fit names its ranks in the error of a run") {
  CHECK_THAT(error_of_ranks(
                 [](ProcessGroup& group) {
                   if (group.rank() == 1) group.send(Tensor::zeros({90}), 2);
                   if (group.rank() == 2) group.receive(Out(Tensor::zeros({100})), 1);
                   sum(group);
                 },
                 "ring", true),
             ContainsText("message #1 from rank 1 to rank 2 (tag 0) does not fit: rank 1 sends f32[90], and rank 2 "
                          "receives f32[100]; a send() and its receive() need the same"));
}

TEST_CASE("a small message that nobody receives is named at the deadline where ranks compare what they do") {
  CHECK_THAT(error_of_ranks(
                 [](ProcessGroup& group) {
                   if (group.rank() == 0) group.send(Tensor::zeros({4}), 1);
                   sum(group);
                 },
                 "auto", true),
             ContainsText("waits in send of f32[4] to rank 1 (tag 0)"));
  CHECK_THAT(error_of_ranks(
                 [](ProcessGroup& group) {
                   if (group.rank() == 0) group.send(Tensor::zeros({4}), 1, 3);
                   if (group.rank() == 1) group.receive(Out(Tensor::zeros({4})), 0, 4);
                 },
                 "auto", true),
             ContainsText("tags differ: ") && ContainsText("(tag 3)") && ContainsText("(tag 4)"));
}

TEST_CASE("a difference that all ranks are told of can be survived") {
  std::atomic<int> errors = 0;
  run_thread_ranks(2, native_options("threads", "auto"), {.timeout = 5.0}, [&](ProcessGroup& group) {
    try {
      sum(group, group.rank() == 0 ? 4 : 5);
    } catch (const Error&) {
      ++errors;
    }
    std::this_thread::sleep_for(300ms);  // the watchdogs look at it
    sum(group);
  });
  CHECK(errors == 2);
}

TEST_CASE("a wait may take any time where there is no deadline, and less than it where there is one") {
  for (const double timeout : {0.0, 5.0}) {
    run_thread_ranks(2, native_options("threads", "auto"), {.timeout = timeout}, [](ProcessGroup& group) {
      if (group.rank() == 1) std::this_thread::sleep_for(700ms);
      sum(group);
    });
  }
}

TEST_CASE("others wait for as long as it takes for a rank that does long work") {
  run_thread_ranks(2, native_options("threads", "auto"), {.timeout = 0.3}, [](ProcessGroup& group) {
    if (group.rank() == 1) {
      const LongWork writing;
      std::this_thread::sleep_for(1s);
    }
    sum(group);
  });
  // No longer than that.
  CHECK_THAT(error_of_ranks([](ProcessGroup& group) {
               if (group.rank() == 1) {
                 {
                   const LongWork writing;
                 }
                 std::this_thread::sleep_for(1500ms);
               }
               sum(group);
             }),
             ContainsText("rank 1 (host ") && ContainsText("has not entered all_reduce #1"));
}

TEST_CASE("the deadline begins when long work ends") {
  run_thread_ranks(2, native_options("threads", "auto"), {.timeout = 0.6}, [](ProcessGroup& group) {
    if (group.rank() == 1) {
      {
        const LongWork writing;
        std::this_thread::sleep_for(1s);
      }
      std::this_thread::sleep_for(200ms);
    }
    sum(group);
  });
}

TEST_CASE("long work that has begun before a group is that of the group, too") {
  std::vector<bool> seen;
  run_thread_ranks(2, native_options("threads", "auto"), {.timeout = 30.0}, [&](ProcessGroup& whole) {
    std::unique_ptr<ProcessGroup> group;
    const auto last_view = [&](bool is_expected) {
      if (whole.rank() == 0)
        seen.push_back(views_of_process(getpid()).back().ranks.at(0).is_in_long_work == is_expected);
    };
    {
      const LongWork outer;
      group = whole.split(0, whole.rank());
      last_view(true);
    }
    last_view(false);
    {
      const LongWork later;
      last_view(true);
    }
    whole.barrier();
  });
  CHECK(seen == std::vector{true, true, true});
}

TEST_CASE("a wait in which something moves may take longer than the deadline") {
  const auto backend = make_self_backend();
  const auto board = std::make_shared<StatusBoard>(*backend, 0.6);
  std::atomic<int> calls = 0;
  const Watchdog watchdog(board, nullptr, 0.6, [&](const auto&...) { ++calls; });
  board->mine().waits = 1;
  board->mine().waits_for = 2;
  for (std::uint64_t step = 1; step <= 40; ++step) {
    board->mine().step.count(step);
    std::this_thread::sleep_for(50ms);
  }
  CHECK(calls == 0);
  for (int i = 0; i < 200 && calls == 0; ++i) std::this_thread::sleep_for(50ms);
  CHECK(calls == 1);
}

TEST_CASE("a process made by fork() that drops a group does not leave it for its parent") {
  std::vector<bool> seen;
  run_thread_ranks(2, native_options("threads", "auto"), {.timeout = 30.0}, [&](ProcessGroup& whole) {
    std::unique_ptr<ProcessGroup> group = whole.split(0, whole.rank());
    if (whole.rank() == 0) {
      const pid_t child = fork();
      if (child == 0) {
        group.reset();
        _exit(0);
      }
      int status = 0;
      seen.push_back(waitpid(child, &status, 0) == child && status == 0);
      seen.push_back(views_of_process(getpid()).back().ranks.at(0).end == RankEnd::none);
    }
    sum(*group);
  });
  CHECK(seen == std::vector{true, true});
}

TEST_CASE("a process is another one by when it began, where both count time alike") {
  const auto backend = make_self_backend();
  StatusBoard board(*backend, 30.0);
  const auto state = [&] { return board.look().ranks.front().state; };
  CHECK(state() == ProcessState::runs);
  ++board.mine().process_start;
  CHECK(state() == ProcessState::ended);
  ++board.mine().time_namespace;
  CHECK(state() == ProcessState::runs);
}

TEST_CASE("a process ends even where nobody reads why") {
  const pid_t child = fork();
  if (child == 0) {
    int ends[2] = {};
    if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) _exit(3);
    fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
    const std::string blanks(4096, ' ');
    while (write(STDERR_FILENO, blanks.data(), blanks.size()) > 0) continue;
    fcntl(STDERR_FILENO, F_SETFL, 0);
    run_thread_ranks(2, native_options("threads", "auto"), {.timeout = 0.3}, [](ProcessGroup& group) {
      if (group.rank() == 1) std::this_thread::sleep_for(60s);
      sum(group);
    });
    _exit(4);
  }
  int status = 0;
  for (int i = 0; i < 300 && waitpid(child, &status, WNOHANG) == 0; ++i) std::this_thread::sleep_for(100ms);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 2);
}

namespace {

/// As backend nccl: sums on a GPU are its own, and what is in host memory is another backend's.
class GpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "gpu"; }
  Place place() const override { return host_.place(); }
  bool takes(Device, CollectiveKind) const override { return true; }
  Backend& on(Device device) override { return device.type == DeviceType::cpu ? host_ : static_cast<Backend&>(*this); }
  std::unique_ptr<Work> start(const Collective& collective) override {
    require(collective.kind == CollectiveKind::all_reduce, "{}: of memory that no GPU reads", name_of(collective.kind));
    return done_work();
  }
  std::vector<std::string> all_gather_bytes(std::string_view mine) override { return host_.all_gather_bytes(mine); }
  std::unique_ptr<Backend> subgroup(std::span<const int>) override { fail("it does not part"); }

 private:
  TwinEvents events_;
  TwinBackend host_{events_};
};

}  // namespace

TEST_CASE("a backend of GPUs is given no host memory by those that watch it") {
  std::string obstacle;
  const auto backend = watch(std::make_unique<GpuBackend>(), {.checks = true}, obstacle);
  CHECK(backend->all_gather_bytes("text") == std::vector<std::string>{"text", "text"});
  CHECK_NOTHROW(backend->run({.kind = CollectiveKind::all_reduce, .counts = {0}}));
}

TEST_CASE("the deadline is that of the environment, or half a minute") {
  ::unsetenv("TANDEM_COMM_TIMEOUT");
  CHECK(default_timeout() == 30.0);
  ::setenv("TANDEM_COMM_TIMEOUT", "2.5", 1);
  CHECK(default_timeout() == 2.5);
  for (const char* const wrong : {"-1", "x", "", "nan", "inf"}) {
    ::setenv("TANDEM_COMM_TIMEOUT", wrong, 1);
    CHECK_THAT(error_of(default_timeout), ContainsText("give seconds, or 0 for no deadline"));
  }
  ::unsetenv("TANDEM_COMM_TIMEOUT");
}
