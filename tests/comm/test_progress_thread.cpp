// Works that move on without anybody polling: when the thread looks at them, when it does not, and what it leaves.
#include "tandem/comm/progress/progress_thread.h"

#include "tandem/core/error.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/forked.h"

#include <chrono>
#include <ctime>
#include <functional>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

using namespace std::chrono_literals;

/// What a work did, for who looks from outside.
struct Seen {
  std::atomic<int> polls = 0;
  std::atomic<bool> may_end = false, fails = false, is_dropped = false;

  void wait_for_polls(int count) const {
    while (polls < count) std::this_thread::yield();
  }
};

class SeenWork final : public Work {
 public:
  explicit SeenWork(Seen& seen) : seen_(seen) {}
  ~SeenWork() override { seen_.is_dropped = true; }
  SeenWork(const SeenWork&) = delete;
  SeenWork& operator=(const SeenWork&) = delete;
  bool poll() override {
    ++seen_.polls;
    require(!seen_.fails, "no such rank");
    return seen_.may_end;
  }
  void wait() override {
    while (!poll()) std::this_thread::yield();
  }

 private:
  Seen& seen_;
};

std::unique_ptr<Work> add(ProgressThread& thread, Seen& seen) {
  return thread.add([&] { return std::make_unique<SeenWork>(seen); });
}

/// Polls within 20 milliseconds.
int polls_meanwhile(const Seen& seen) {
  const int before = seen.polls;
  std::this_thread::sleep_for(20ms);
  return seen.polls - before;
}

/// Of this process, within 200 milliseconds.
double cpu_seconds_meanwhile() {
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(200ms);
  return static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
}

}  // namespace

TEST_CASE("the thread moves works on until they end, and then sleeps") {
  ProgressThread thread(false);
  CHECK(cpu_seconds_meanwhile() < 0.02);
  Seen first, second;
  const auto one = add(thread, first), two = add(thread, second);
  first.wait_for_polls(5);
  second.wait_for_polls(5);
  first.may_end = true;
  while (polls_meanwhile(first) > 0) continue;
  CHECK(polls_meanwhile(second) > 0);
  const int polls = first.polls;
  CHECK(one->poll());
  one->wait();
  CHECK(first.polls == polls);  // nobody needed to look again
  CHECK_FALSE(two->poll());
  CHECK_FALSE(two->wait_for(2ms));
  second.may_end = true;
  two->wait();
  CHECK(cpu_seconds_meanwhile() < 0.02);
  CHECK(polls_meanwhile(second) == 0);
}

TEST_CASE("while somebody is in the backend, the thread is not, and goes on afterwards") {
  ProgressThread thread(true);
  Seen seen;
  const auto work = add(thread, seen);
  {
    const auto inside = thread.enter();
    CHECK(polls_meanwhile(seen) == 0);
    const auto again = thread.enter();
    CHECK_FALSE(work->poll());
    CHECK(polls_meanwhile(seen) == 0);
  }
  seen.wait_for_polls(seen.polls + 3);
  seen.may_end = true;
  while (polls_meanwhile(seen) > 0) continue;
  CHECK(work->poll());
}

TEST_CASE("what a work fails by on the thread is thrown by its polls and waits, and others go on") {
  ProgressThread thread(false);
  Seen bad, good;
  const auto failing = add(thread, bad), other = add(thread, good);
  bad.fails = true;
  while (polls_meanwhile(bad) > 0) continue;
  for (int i = 0; i < 2; ++i) {
    CHECK_THAT(error_of([&] { failing->wait(); }), ContainsText("no such rank"));
    CHECK_THAT(error_of([&] { failing->poll(); }), ContainsText("no such rank"));
    CHECK_THAT(error_of([&] { failing->wait_for(1ms); }), ContainsText("no such rank"));
  }
  CHECK(polls_meanwhile(good) > 0);
  good.may_end = true;
  other->wait();
  // One that fails while its caller waits, and one that fails at once.
  Seen waited, lost;
  const auto late = add(thread, waited);
  waited.fails = true;
  CHECK_THAT(error_of([&] { late->wait(); }), ContainsText("no such rank"));
  lost.fails = true;
  const auto early = add(thread, lost);
  CHECK_THAT(error_of([&] { early->wait(); }), ContainsText("no such rank"));
  CHECK_THAT(error_of([&] { thread.add([]() -> std::unique_ptr<Work> { fail("no start"); }); }),
             ContainsText("no start"));
}

TEST_CASE("a work that is dropped is looked at no more, and one that outlives the thread goes on by its polls") {
  Seen dropped, kept;
  std::unique_ptr<Work> rest;
  {
    ProgressThread thread(false);
    {
      const auto work = add(thread, dropped);
      dropped.wait_for_polls(3);
    }
    CHECK(dropped.is_dropped);
    CHECK(polls_meanwhile(dropped) == 0);
    rest = add(thread, kept);
    kept.wait_for_polls(3);
  }
  CHECK(polls_meanwhile(kept) == 0);
  CHECK_FALSE(rest->poll());
  kept.may_end = true;
  rest->wait();
  CHECK(rest->poll());
}

TEST_CASE("many works come and go while the thread looks at them") {
  ProgressThread thread(false);
  for (int round = 0; round < 200; ++round) {
    Seen seen[3];
    std::vector<std::unique_ptr<Work>> works;
    for (Seen& each : seen) works.push_back(add(thread, each));
    seen[round % 3].may_end = true;
    works[static_cast<std::size_t>(round % 3)]->wait();
    seen[1].may_end = true;
    while (!works[1]->poll()) continue;
  }  // others are dropped
}

#ifdef __linux__
TEST_CASE("a process made by fork() leaves the thread and its works alone") {
  ProgressThread thread(false);
  Seen seen;
  auto work = add(thread, seen);
  for (int i = 0; i < 20; ++i) {  // at any moment of the thread
    const int code = exit_code_forked([&] {
      const bool is_told = error_of([&] { work->wait(); }).find("made by fork()") != std::string::npos;
      const int polls = seen.polls;
      std::this_thread::sleep_for(1ms);
      work.reset();
      std::destroy_at(&thread);
      return is_told && seen.polls == polls && !seen.is_dropped ? 0 : 1;
    });
    CHECK(code == 0);
  }
  seen.may_end = true;
  work->wait();
}
#endif
