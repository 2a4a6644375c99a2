// Blocking operations as works: order, errors, and what is given up.
#include "tandem/comm/backends/operation_thread.h"

#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <atomic>
#include <chrono>
#include <latch>
#include <vector>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

TEST_CASE("operations are carried out in their order, those that are run at once as well") {
  OperationThread thread;
  std::vector<int> done;
  std::vector<std::unique_ptr<Work>> works;
  for (int i = 0; i < 100; ++i) works.push_back(thread.start([&done, i] { done.push_back(i); }));
  thread.run([&done] { done.push_back(100); });
  for (int i = 0; i <= 100; ++i) CHECK(done.at(static_cast<std::size_t>(i)) == i);
  for (const auto& work : works) CHECK(work->poll());
  CHECK(thread.is_idle());
  const auto caller = std::this_thread::get_id();
  thread.run([&] { CHECK(std::this_thread::get_id() == caller); });  // nothing is under way
}

TEST_CASE("an operation's error is thrown by its work, and those behind it go on") {
  OperationThread thread;
  const auto bad = thread.start([] { fail("no such rank"); });
  bool is_done = false;
  const auto good = thread.start([&is_done] { is_done = true; });
  good->wait();
  CHECK(is_done);
  CHECK_THAT(error_of([&] { bad->wait(); }), ContainsText("no such rank"));
  CHECK_THAT(error_of([&] { bad->poll(); }), ContainsText("no such rank"));
  CHECK_THAT(error_of([&] { thread.run([] { fail("at once"); }); }), ContainsText("at once"));
}

TEST_CASE("a work is not complete before its operation is, and a wait with a limit comes back") {
  OperationThread thread;
  std::latch may_end(1);
  const auto work = thread.start([&] { may_end.wait(); });
  CHECK_FALSE(work->poll());
  CHECK_FALSE(work->wait_for(std::chrono::milliseconds(2)));
  CHECK_FALSE(thread.is_idle());
  may_end.count_down();
  work->wait();
  CHECK(work->poll());
}

TEST_CASE("where the thread ends, what has not begun is given up and says so") {
  std::unique_ptr<Work> first, second;
  std::atomic<bool> second_began = false;
  std::latch began(1);
  {
    OperationThread thread;
    first = thread.start([&] {
      began.count_down();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
    second = thread.start([&] { second_began = true; });
    began.wait();
  }
  CHECK(first->poll());
  CHECK_THAT(error_of([&] { second->wait(); }), ContainsText("given up before it began"));
  CHECK_FALSE(second_began);
}
