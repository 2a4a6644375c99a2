// Collectives of the Gloo library between ranks that are threads, against what is known of each element.
#if TANDEM_HAS_GLOO
#include "tandem/comm/backends/gloo/gloo_backend.h"
#include "tandem/comm/backends/native/native_backend.h"
#include "tandem/comm/process_group.h"
#include "tandem/comm/transports/threads/thread_network.h"
#include "tests/comm/collective_checks.h"
#include "tests/support/catch.h"

#include <chrono>
#include <functional>
#include <thread>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

/// What `body` returns or throws on each rank, in a thread each.
std::vector<std::string> on_gloo_ranks(int ranks,
                                       const std::function<std::string(std::unique_ptr<ProcessGroup>)>& body) {
  const ThreadNetwork network;
  const std::vector<int> one_host(static_cast<std::size_t>(ranks), 0);
  std::vector<std::string> results(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::string& result = results[static_cast<std::size_t>(rank)];
      try {
        auto meeting =
            make_native_backend(place_of(one_host, rank), one_host, network.transport(rank), {.shared_memory = false});
        result = body(std::make_unique<ProcessGroup>(make_gloo_backend(std::move(meeting))));
      } catch (const std::exception& error) {
        result = error.what();
      }
    });
  }
  threads.clear();  // joins
  return results;
}

void check_on_ranks(int ranks, const std::function<std::string(ProcessGroup&)>& check) {
  INFO(ranks << " ranks");
  for (const std::string& fault : on_gloo_ranks(ranks, [&](const auto& group) { return check(*group); }))
    CHECK(fault == "");
}

}  // namespace

TEST_CASE("gloo: every collective, every dtype, nasty sizes") {
  for (const int ranks : {1, 2, 3, 5}) {
    for (const std::int64_t count : {0, ranks - 1, ranks, 101}) {
      INFO(count << " elements");
      check_on_ranks(ranks, [&](ProcessGroup& group) { return fault_of_all_collectives(group, count); });
    }
  }
}

TEST_CASE("gloo: rows of very different numbers, and tensors at odd places") {
  for (const int ranks : {1, 2, 3}) {
    check_on_ranks(ranks, [](ProcessGroup& group) { return fault_of_uneven_rows(group, 7); });
    check_on_ranks(ranks, [](ProcessGroup& group) { return fault_of_odd_places(group, 101); });
  }
}

TEST_CASE("gloo: groups of some ranks work at the same time, and have their own numbers") {
  check_on_ranks(5, [](ProcessGroup& group) { return fault_of_split(group); });
}

TEST_CASE("gloo: messages of one tag arrive in order, tags do not mix, and large ones may meet in any order") {
  check_on_ranks(2, [](ProcessGroup& group) -> std::string {
    constexpr std::int64_t kLarge = 1 << 20;
    const Tensor a = Tensor::full({kLarge}, 1.0), b = Tensor::full({kLarge}, 2.0), c = Tensor::full({3}, 3.0);
    if (group.rank() == 0) {
      const auto first = group.send_async(a, 1, 5), second = group.send_async(b, 1, 5),
                 other = group.send_async(c, 1, 6);
      group.barrier();  // which nothing that is under way holds up
      other->wait();
      second->wait();
      first->wait();
      return "";
    }
    const Tensor x = Tensor::zeros({kLarge}), y = Tensor::zeros({kLarge}), z = Tensor::zeros({3});
    group.barrier();
    group.receive(Out(z), 0, 6);
    group.receive(Out(x), 0, 5);
    group.receive(Out(y), 0, 5);
    const auto value = [](const Tensor& tensor) { return tensor.narrow(0, tensor.numel() - 1, 1).item(); };
    return value(x) == 1.0 && value(y) == 2.0 && value(z) == 3.0 ? "" : "messages in another order";
  });
}

TEST_CASE("gloo: several collectives under way are waited for in any order") {
  check_on_ranks(3, [](ProcessGroup& group) -> std::string {
    std::vector<Tensor> tensors;
    std::vector<std::unique_ptr<Work>> works;
    for (int i = 0; i < 6; ++i) {
      tensors.push_back(Tensor::full({1000}, i + group.rank()));
      works.push_back(group.all_reduce_async(Out(tensors.back())));
    }
    for (std::size_t i = works.size(); i-- > 0;) works[i]->wait();
    for (int i = 0; i < 6; ++i)
      if (tensors[static_cast<std::size_t>(i)].narrow(0, 999, 1).item() != 3 * i + 3) return "a wrong sum";
    return "";
  });
}

TEST_CASE("gloo: a rank that ends is noticed by those that wait for it, and they say what they were at") {
  const auto results = on_gloo_ranks(2, [](std::unique_ptr<ProcessGroup> group) -> std::string {
    group->barrier();
    if (group->rank() == 1) return "ended";  // and its connections are closed
    group->all_reduce(Out(Tensor::full({5}, 1.0)));
    return "a sum of one rank";
  });
  CHECK(results[1] == "ended");
  CHECK_THAT(results[0], ContainsText("gloo: all_reduce sum f32[5] on rank 0: ") &&
                             ContainsText("the process of another rank has ended"));
}

TEST_CASE("gloo: a group can be dropped while the others have not come, who then find what it began") {
  const auto results = on_gloo_ranks(2, [&](std::unique_ptr<ProcessGroup> group) -> std::string {
    group->barrier();
    const Tensor x = Tensor::full({5}, 1.0);
    if (group->rank() == 0) {
      group->all_reduce_async(Out(x));
      group->receive_async(Out(Tensor::zeros({5})), 1, 1);  // which never comes
      group.reset();
      return "dropped";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    group->all_reduce(Out(x));
    return x.narrow(0, 4, 1).item() == 2.0 ? "summed" : "a wrong sum";
  });
  CHECK(results == std::vector<std::string>{"dropped", "summed"});
}

TEST_CASE("gloo: a rank that fails while an operation is under way says why, and nothing hangs") {
  const auto results = on_gloo_ranks(2, [](std::unique_ptr<ProcessGroup> group) -> std::string {
    group->barrier();
    const Tensor x = Tensor::full({5}, 1.0);
    if (group->rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      group->all_reduce(Out(x));  // the other rank's operation goes on
      return "done";
    }
    const auto work = group->all_reduce_async(Out(x));
    fail("label 12 is out of range");
  });
  CHECK(results[0] == "label 12 is out of range");
  CHECK(results[1] == "done");
}

TEST_CASE("gloo: messages keep their tensors, and are carried to their ends where their works are dropped") {
  check_on_ranks(2, [](ProcessGroup& group) -> std::string {
    constexpr std::int64_t kCount = 1 << 20;
    const Tensor sum = Tensor::full({3}, 1.0);
    if (group.rank() == 0) {
      group.send_async(Tensor::full({kCount}, 7.0), 1, 1);  // nobody keeps the tensor, nor the work
      std::vector<Tensor> others;
      for (int i = 0; i < 8; ++i) others.push_back(Tensor::full({kCount}, 9.0));
      group.barrier();
      group.all_reduce(Out(sum));
      return sum.narrow(0, 0, 1).item() == 2.0 ? "" : "a wrong sum";
    }
    group.receive_async(Out(Tensor::zeros({kCount})), 0, 2);  // which never comes
    group.barrier();
    const Tensor x = Tensor::zeros({kCount});
    group.receive(Out(x), 0, 1);
    group.all_reduce(Out(sum));
    for (const float value : x.to_vector<float>())
      if (value != 7.0f) return "another tensor's elements";
    return sum.narrow(0, 0, 1).item() == 2.0 ? "" : "a wrong sum";
  });
}
#endif
