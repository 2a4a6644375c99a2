// Works that move on while no rank calls its group.
#include "tandem/comm/work.h"
#include "tests/comm/mpi/mpi_test.h"

#include <chrono>
#include <thread>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

std::unique_ptr<ProcessGroup> threaded_group(std::string_view name) {
  auto group = name == "messages" ? make_message_group("ring") : make_process_group(name, environment());
  group->set_progress("thread");
  return group;
}

}  // namespace

TEST_CASE("with a progress thread an all-reduce is done though nobody polls") {
  const std::string_view name = GENERATE("mpi", "native", "messages");
  const auto group = threaded_group(name);
  CAPTURE(name);
  CHECK(group->progress() == "thread");
  const Tensor ones = Tensor::full({1 << 20}, 1.0);
  group->barrier();
  const auto work = group->all_reduce_async(Out(ones));
  std::this_thread::sleep_for(std::chrono::seconds(1));  // a poll would move it on
  CHECK(work->poll());
  CHECK(ones.narrow(0, (1 << 20) - 1, 1).item() == group->size());
}

TEST_CASE("with a progress thread an all-reduce ends though one rank does not call its group") {
  const std::string_view name = GENERATE("mpi", "native", "messages");
  const auto group = threaded_group(name),
             told = make_process_group({.backend = "mpi", .progress = "poll"}, environment());
  CAPTURE(name);
  const Tensor ones = Tensor::full({1 << 20}, 1.0);
  const auto work = group->all_reduce_async(Out(ones));
  // Rank 0 does without its group until all others have the sum.
  if (group->rank() != 0) CHECK(work->wait_for(std::chrono::seconds(20)));
  told->barrier();
  CHECK(work->poll());
}

TEST_CASE("several groups with progress threads are at work at once") {
  const auto a = threaded_group("mpi"), b = threaded_group("native"), c = threaded_group("messages");
  for (int round = 0; round < 20; ++round) {
    std::vector<Tensor> tensors;
    std::vector<std::unique_ptr<Work>> works;
    for (ProcessGroup* const group : {a.get(), b.get(), c.get()}) {
      tensors.push_back(Tensor::full({50000}, round + group->rank()));
      works.push_back(group->all_reduce_async(Out(tensors.back())));
    }
    const double sum = round * a->size() + a->size() * (a->size() - 1) / 2.0;
    for (std::size_t i = 0; i < works.size(); ++i) {
      const std::size_t which = (i + static_cast<std::size_t>(a->rank())) % works.size();  // in any order
      works[which]->wait();
      CHECK(tensors[which].narrow(0, 49999, 1).item() == sum);
    }
  }
}

TEST_CASE("a progress thread is refused by backends that need none") {
  CHECK_THAT(agreed_error_of([] { make_process_group({.backend = "native", .progress = "tread"}, environment()); }),
             ContainsText("tread"));
  const auto group = make_process_group({.progress = "thread"}, environment());  // self or native
  CHECK(group->progress() == (group->size() == 1 ? "" : "thread"));
  if (environment().size() > 1) return;
  CHECK_THAT(agreed_error_of([] { make_process_group({.backend = "self", .progress = "thread"}, environment()); }),
             ContainsText("progress thread: is for backends native, threads and mpi, and self needs none"));
}
