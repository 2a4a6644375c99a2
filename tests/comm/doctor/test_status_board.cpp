// What ranks show of themselves: to each other, to a process beside them, and in a file.
#include "tandem/comm/doctor/status_board.h"

#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/comm/doctor/activity.h"
#include "tandem/core/module_scope.h"
#include "tandem/core/profiler.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

using namespace std::chrono_literals;

void sum(ProcessGroup& group, std::int64_t count) { group.all_reduce(Out(Tensor::full({count}, 1.0))); }

/// The views of this process's groups, of which there is one.
GroupView only_view() {
  const auto views = views_of_process(getpid());
  return views.size() == 1 ? views.front() : GroupView();
}

}  // namespace

TEST_CASE("what a group does can be looked at from outside") {
  GroupView view;
  std::string while_computing;
  run_thread_ranks(2, native_options("threads", "ring"), {.timeout = 30.0}, [&](ProcessGroup& group) {
    sum(group, 100);
    if (group.rank() == 0) return sum(group, 7);
    {
      const detail::PathScope module("features.7");
      const ProfileRange outer("forward Linear(4, 4)");
      {
        const ProfileRange inner("matmul");
      }
      std::this_thread::sleep_for(300ms);
      view = only_view();
      while_computing = text_of(view);
    }
    sum(group, 7);
  });
  REQUIRE(view.ranks.size() == 2);
  CHECK(view.backend == "threads");
  CHECK(view.timeout == 30.0);
  CHECK(view.ranks[0].is_waiting);
  CHECK(describe(view.ranks[0].waits_for) == "all_reduce #2 sum f32[7]");
  CHECK(view.ranks[0].step == "step 1 of ring, for rank 1");
  CHECK(view.ranks[1].activity == "forward Linear(4, 4) of features.7");
  CHECK(view.ranks[1].finished == 1);
  CHECK(longest_waiting(view) == 0);
  CHECK_THAT(while_computing,
             ContainsText("and waits in all_reduce #2 sum f32[7]: step 1 of ring, for rank 1, for 0."));
  CHECK_THAT(error_of([] { views_of_process(getpid()); }), ContainsText("is no rank of a run of several ranks"));
  CHECK_THAT(error_of([] { views_of_process(999999999); }), ContainsText("process 999999999: No such file"));
}

TEST_CASE("a file of statuses shows them as they were, and no other file does") {
  const TemporaryDirectory directory;
  const std::string path = (directory.path() / "hang.bin").string();
  run_thread_ranks(2, native_options("threads", "auto"), {}, [&](ProcessGroup& group) {
    sum(group, 100);
    group.barrier();
  });
  const auto backend = make_self_backend();
  StatusBoard board(*backend, 30.0);
  board.mine().collectives[1].set({.number = 1, .kind = CollectiveKind::all_reduce, .dtype = DType::f32, .count = 4});
  board.mine().started = 1;
  board.mine().waits_for = 2;
  REQUIRE(board.save(path));
  // By a file of another name, of which nothing is left.
  using Files = std::filesystem::directory_iterator;
  CHECK(std::distance(Files(directory.path()), Files()) == 1);
  std::filesystem::create_directory(directory.path() / "folder");
  CHECK_FALSE(board.save((directory.path() / "folder").string()));
  CHECK(std::distance(Files(directory.path()), Files()) == 2);
  const GroupView view = view_of_file(path);
  REQUIRE(view.ranks.size() == 1);
  CHECK(describe(view.ranks[0].waits_for) == "all_reduce #1 sum f32[4]");
  CHECK(view.ranks[0].process == getpid());
  CHECK(view.timeout == 30.0);

  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const auto write = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    return path;
  };
  CHECK_THAT(error_of([&] { view_of_file(write(bytes.substr(1))); }), ContainsText("are not what ranks show"));
  CHECK_THAT(error_of([&] { view_of_file(write("")); }), ContainsText("0 bytes are not what ranks show"));
  CHECK_THAT(error_of([&] { view_of_file(write(std::string(bytes.size(), '\0'))); }), ContainsText("of this version"));
  CHECK_THAT(error_of([&] { view_of_file((directory.path() / "none").string()); }), ContainsText("cannot read"));
  // Whatever it holds behind the mark, there is a text.
  for (const char filler : {'\xff', '\x01', 'A'}) {
    std::string other(bytes.size(), filler);
    other.replace(0, 8, bytes, 0, 8);
    const GroupView hostile = view_of_file(write(other));
    CHECK_FALSE(text_of(hostile).empty());
    CHECK_FALSE(text_of(explain_wait(hostile, 0)).empty());
    CHECK_NOTHROW(explain_look(hostile));
  }
  board.mine().activity.set("red\x1b[31m\n");
  std::strcpy(board.mine().host, "h\a");
  board.mine().waits_for = 0;
  REQUIRE(board.save(path));
  CHECK_THAT(text_of(view_of_file(path)), ContainsText("rank 0 (host h?, ") && ContainsText("is in red?[31m?\n"));
}

TEST_CASE("what a rank waits for is known however many operations it has begun since") {
  for (const bool is_message : {false, true}) {
    GroupView view;
    run_thread_ranks(2, native_options("threads", "ring"), {.timeout = 30.0}, [&](ProcessGroup& group) {
      std::vector<Tensor> tensors;
      std::vector<std::unique_ptr<Work>> works;
      const auto begin = [&](int i) {
        tensors.push_back(Tensor::full({4}, 1.0));
        if (!is_message) return group.all_reduce_async(Out(tensors.back()));
        return group.rank() == 0 ? group.receive_async(Out(tensors.back()), 1, i)
                                 : group.send_async(tensors.back(), 0, i);
      };
      if (group.rank() == 1) {
        std::this_thread::sleep_for(300ms);
        view = only_view();
      }
      for (int i = 0; i < 70; ++i) works.push_back(begin(i));
      for (const auto& work : works) work->wait();
    });
    REQUIRE(view.ranks.size() == 2);
    CHECK(describe(view.ranks[0].waits_for) ==
          (is_message ? "receive of f32[4] from rank 1 (tag 0)" : "all_reduce #1 sum f32[4]"));
    CHECK(explain_wait(view, 0).blamed == std::vector{1});
  }
}

TEST_CASE("a rank shows in its other groups what it waits for in one, and what its number in the whole group is") {
  std::vector<GroupView> views;
  run_thread_ranks(3, native_options("threads", "ring"), {.timeout = 30.0}, [&](ProcessGroup& whole) {
    const auto part = whole.split(whole.rank() == 0 ? 1 : 0, -whole.rank());
    if (whole.rank() == 2) sum(*part, 7);
    if (whole.rank() == 1) {
      std::this_thread::sleep_for(300ms);
      views = views_of_process(getpid());
      sum(*part, 7);
    }
    sum(whole, 4);
    if (whole.rank() == 0) views.push_back(views_of_process(getpid()).front());
  });
  const auto of_size = [&](std::size_t size) {
    return *std::ranges::find_if(views, [&](const GroupView& view) { return view.ranks.size() == size; });
  };
  REQUIRE(views.size() >= 3);
  CHECK(of_size(2).ranks[0].whole_rank == 2);
  CHECK(of_size(2).ranks[1].whole_rank == 1);
  CHECK(describe(of_size(2).ranks[0].waits_for) == "all_reduce #1 sum f32[7]");
  CHECK_FALSE(of_size(2).ranks[0].waits_elsewhere);
  CHECK(of_size(3).ranks[2].waits_elsewhere);
  CHECK(of_size(3).ranks[2].activity == "all_reduce #1 sum f32[7] of another group");
  CHECK_FALSE(of_size(3).ranks[2].is_waiting);
  CHECK_FALSE(of_size(3).ranks[0].waits_elsewhere);
  CHECK(numbers_of(of_size(2)) == "ranks 0, 1 of this group are ranks 2, 1 of all");
  CHECK(explain_wait(of_size(3), 0).blamed == std::vector{1});  // rank 0 waits for both
  CHECK_FALSE(views.back().ranks[2].waits_elsewhere);
}

TEST_CASE("groups that begin or end while a process is looked at are left out") {
  std::size_t fewest = 0;
  run_thread_ranks(2, native_options("threads", "ring"), {.timeout = 30.0}, [&](ProcessGroup& whole) {
    std::atomic<bool> ends = false;
    std::thread looks;
    if (whole.rank() == 0)
      looks = std::thread([&] {
        fewest = views_of_process(getpid()).size();
        while (!ends) fewest = std::min(fewest, views_of_process(getpid()).size());
      });
    for (int time = 0; time < 100; ++time) whole.split(0, whole.rank());
    ends = true;
    if (looks.joinable()) looks.join();
    whole.barrier();
  });
  CHECK(fewest >= 1);
}

TEST_CASE("operations are read as they were written, and not while they are") {
  OperationRecord record;
  CHECK(record.get().number == 0);
  const OperationView operation{.number = 12,
                                .kind = CollectiveKind::receive,
                                .dtype = DType::bf16,
                                .op = ReduceOp::max,
                                .peer = 31,
                                .tag = kMaxMessageTag,
                                .count = std::int64_t{1} << 40};
  record.set(operation);
  CHECK(describe(record.get()) == describe(operation));
  std::atomic<bool> ends = false;
  std::atomic<int> wrong = 0;
  std::thread writer([&] {
    for (std::uint64_t number = 1; !ends; ++number)
      record.set({.number = number,
                  .dtype = DType::f32,
                  .peer = static_cast<int>(number),
                  .count = static_cast<std::int64_t>(number)});
  });
  for (int i = 0; i < 100000; ++i)
    if (const OperationView seen = record.get();
        seen.number != 0 && seen.number != 12 && seen.count != static_cast<std::int64_t>(seen.number))
      ++wrong;
  ends = true;
  writer.join();
  CHECK(wrong == 0);
}

TEST_CASE("a collective that failed on another host is shown no more, and what it waits for is whatever its number") {
  const auto backend = make_self_backend();
  StatusBoard board(*backend, 30.0);
  const auto view_of_collectives = [](std::vector<std::uint64_t> numbers) {
    RankView view;
    view.is_known = view.is_far = true;
    view.started = 20;
    for (const std::uint64_t number : numbers)
      view.collectives.push_back({.number = number, .kind = CollectiveKind::all_reduce, .count = 4});
    return view;
  };
  const auto numbers = [&] {
    std::vector<std::uint64_t> result;
    const GroupView group = board.look();
    for (const OperationView& operation : group.ranks.front().collectives) result.push_back(operation.number);
    return result;
  };
  board.show_far(view_of_collectives({3, 17, 18, 19, 20}), steady_nanoseconds());
  CHECK(numbers() == std::vector<std::uint64_t>{3, 17, 18, 19, 20});
  board.show_far(view_of_collectives({17, 18, 20}), steady_nanoseconds());
  CHECK(numbers() == std::vector<std::uint64_t>{3, 17, 18, 20});  // of #3 nothing is said
  RankView waiting = view_of_collectives({18, 20});
  waiting.is_waiting = true;
  waiting.waits_for = {.number = 2, .kind = CollectiveKind::all_reduce, .dtype = DType::f32, .count = 7};
  board.show_far(waiting, steady_nanoseconds());
  CHECK(describe(board.look().ranks.front().waits_for) == "all_reduce #2 sum f32[7]");
  board.show_far(view_of_collectives({}), steady_nanoseconds());
  CHECK(numbers().empty());
}

TEST_CASE("texts are cut to their place, and read whole") {
  SharedText<2> text;
  CHECK(text.get().empty());
  text.set("short");
  CHECK(text.get() == "short");
  text.set("sixteen letters.and more");
  CHECK(text.get() == "sixteen letters.");
  text.set("");
  CHECK(text.get().empty());
}

TEST_CASE("what it costs that the range of a rank is shown", "[.timing]") {
  const auto median_ns = [] {
    constexpr int kRounds = 9, kTimes = 100'000;
    std::vector<double> all;
    for (int round = 0; round < kRounds; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kTimes; ++i)
        const ProfileRange range([] { return std::string("backward conv2d [64, 32, 16, 16]"); });
      all.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() /
                    kTimes);
    }
    std::ranges::nth_element(all, all.begin() + kRounds / 2);
    return all[kRounds / 2];
  };
  const auto status = std::make_unique<RankStatus>();
  const double unseen = median_ns();
  const ShownActivity shown(*status);
  const double seen = median_ns();
  const detail::PathScope path("features.7");
  const double of_module = median_ns();
  WARN("a range that nobody sees " << unseen << " ns, one that is shown " << seen << " ns, in a module " << of_module
                                   << " ns");
  CHECK(unseen < seen);
}
