// Works of one group, one of which fails: the others go on.
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/core/out.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

void wait_until(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

/// What rank 1 sees of three messages from rank 0: the first and the third come together, before the second, and the
/// third is of another size than rank 1 expects.
std::string seen_of_messages(std::string_view way, std::string_view progress) {
  std::atomic<bool> are_asked_for = false, have_come = false, third_failed = false;
  std::string seen;
  run_thread_ranks(2, native_options("threads", way), [&](ProcessGroup& group) {
    group.set_progress(progress);
    const std::array tensors{Tensor::full({1}, 7.0), Tensor::full({1}, 8.0), Tensor::full({2 + group.rank()}, 9.0)};
    if (group.rank() == 0) {
      wait_until(are_asked_for);
      const auto first = group.send_async(tensors[0], 1, 0), third = group.send_async(tensors[2], 1, 2);
      have_come = true;
      wait_until(third_failed);
      group.send(tensors[1], 1, 1);
      first->wait();
      third->wait();
      return;
    }
    for (const Tensor& each : tensors) each.fill(0.0);
    std::array<std::unique_ptr<Work>, 3> works;
    for (int tag = 0; tag < 3; ++tag)
      works[static_cast<std::size_t>(tag)] = group.receive_async(Out(tensors[static_cast<std::size_t>(tag)]), 0, tag);
    are_asked_for = true;
    wait_until(have_come);
    const std::string fault = error_of([&] { works[2]->wait_for(std::chrono::seconds(10)); });
    const bool first = works[0]->wait_for(std::chrono::seconds(10)), second = works[1]->poll();
    const std::string again = error_of([&] { works[2]->wait(); });
    third_failed = true;
    works[1]->wait();
    seen = fmt::format("{} {}, {} {}; {}; {}", first, tensors[0].item(), second, tensors[1].item(), fault,
                       again == fault ? "the same again" : again);
  });
  return seen;
}

/// Ranks 0 and 1 gather bytes in a group of their own. Rank 0 begins, and its call ends by an error, because rank 2 has
/// one; rank 1 begins later, and with that rank 0's part, which goes on, can be done. Returns what that wrote to memory
/// of rank 0 that others have got meanwhile.
std::string written_behind_a_failed_call() {
  std::atomic<bool> has_begun = false, has_failed = false, has_offered = false;
  std::string seen = "rank 0 had no error";
  error_of([&] {
    run_thread_ranks(3, [&](ProcessGroup& group) {
      const auto pair = group.split(group.rank() == 2 ? 1 : 0);
      if (group.rank() == 2) {
        wait_until(has_begun);
        fail("no such file");
      }
      if (group.rank() == 1) {
        wait_until(has_failed);
        const auto polled = pair->all_reduce_async(Out(Tensor::zeros({1})));  // ends for none
        error_of([&] { pair->all_gather_bytes("from 1"); });
        has_offered = true;
        return;
      }
      const auto polled = pair->all_reduce_async(Out(Tensor::zeros({1})));
      has_begun = true;
      const std::string error = error_of([&] { pair->all_gather_bytes("from 0"); });
      std::vector<std::vector<std::int64_t>> others;
      for (int i = 0; i < 200; ++i) others.emplace_back(2, 77);
      has_failed = true;
      if (error != "rank 2 ended by an error") return;
      wait_until(has_offered);
      polled->wait();
      error_of([&] { pair->barrier(); });
      seen = others == std::vector<std::vector<std::int64_t>>(200, {77, 77}) ? "" : "other numbers";
    });
  });
  return seen;
}

}  // namespace

TEST_CASE("a call that ends by an error writes nothing to memory of others when the group goes on", "[threads]") {
  CHECK(written_behind_a_failed_call().empty());
}

TEST_CASE("a message that fails is an error of its own work, and those before and behind it arrive", "[threads]") {
  for (const std::string_view way : {"ring", "shared-memory"}) {
    for (const std::string_view progress : {"poll", "thread"}) {
      CAPTURE(way, progress);
      CHECK(seen_of_messages(way, progress) ==
            "true 7, false 8; a message of 8 bytes from rank 0, and rank 1 expects 12; the same again");
    }
  }
}
