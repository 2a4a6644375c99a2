// Every collective between ranks that are threads, against what is known of each element: for 1 to 8, 17 and 32 ranks.
#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/native/native_backend.h"
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/comm/process_group.h"
#include "tandem/comm/transports/threads/thread_network.h"
#include "tandem/core/out.h"
#include "tests/comm/collective_checks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <thread>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

/// Puts rank 5's block of an all_gather where rank 0's belongs, and the other way round.
class SwappingBackend final : public Backend {
 public:
  explicit SwappingBackend(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}
  std::string_view name() const override { return "swapping"; }
  Place place() const override { return backend_->place(); }
  std::unique_ptr<Work> start(const Collective& collective) override { return backend_->start(collective); }
  void run(const Collective& collective) override {
    backend_->run(collective);
    const bool is_even = std::ranges::all_of(collective.counts, [](std::int64_t each) { return each == 101; });
    if (collective.kind != CollectiveKind::all_gather || !is_even) return;
    auto* const all = static_cast<std::byte*>(collective.output);
    const std::int64_t bytes = collective.bytes(collective.count());
    std::swap_ranges(all, all + bytes, all + 5 * bytes);
  }
  std::unique_ptr<Backend> subgroup(std::span<const int>) override { fail("not here"); }

 private:
  std::unique_ptr<Backend> backend_;
};

constexpr int kRankCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 17, 32};

/// Of four ranks' sums of f64: adds what the first and the last bring twice, and leaves the middle ones' out.
class RepeatingBackend final : public Backend {
 public:
  explicit RepeatingBackend(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}
  std::string_view name() const override { return "repeating"; }
  Place place() const override { return backend_->place(); }
  std::unique_ptr<Work> start(const Collective& collective) override { return backend_->start(collective); }
  void run(const Collective& collective) override {
    const bool repeats = collective.kind == CollectiveKind::all_reduce && collective.dtype == DType::f64 &&
                         collective.op == ReduceOp::sum;
    if (!repeats) return backend_->run(collective);
    std::vector<double> all(static_cast<std::size_t>(4 * collective.count()));
    Collective gather = collective, sum = collective;
    gather.kind = CollectiveKind::all_gather;
    gather.counts.assign(4, collective.count());
    gather.output = all.data();
    backend_->run(gather);
    sum.input = all.data() + (place().rank < 2 ? 0 : 3) * collective.count();
    backend_->run(sum);
  }
  std::unique_ptr<Backend> subgroup(std::span<const int>) override { fail("not here"); }

 private:
  std::unique_ptr<Backend> backend_;
};

/// What the checks say of ranks that send messages through a faulty backend.
template <typename Faulty>
std::vector<std::string> faults_of(int ranks) {
  const ThreadNetwork network;
  const std::vector<int> one_host(static_cast<std::size_t>(ranks), 0);
  std::vector<std::string> faults(one_host.size());
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto backend =
          make_native_backend(place_of(one_host, rank), one_host, network.transport(rank), {.shared_memory = false});
      ProcessGroup group(std::make_unique<Faulty>(std::move(backend)));
      faults[static_cast<std::size_t>(rank)] = fault_of_all_collectives(group, 101);
    });
  }
  threads.clear();
  return faults;
}

/// Runs `check` on all ranks, which read each other's memory, share a window, or exchange messages alone, and compares
/// what each returns with "".
void check_on_ranks(int ranks, const std::function<std::string(ProcessGroup&)>& check) {
  const NativeOptions ways[] = {{.name = "reading"},
                                {.name = "window", .single_copy = SingleCopy::off},
                                {.name = "messages", .shared_memory = false}};
  for (const NativeOptions& way : ways) {
    // What takes long; tables are checked for more ranks by themselves.
    if (!way.shared_memory && ranks > 8) continue;
    std::vector<std::string> faults(static_cast<std::size_t>(ranks));
    run_thread_ranks(ranks, way,
                     [&](ProcessGroup& group) { faults[static_cast<std::size_t>(group.rank())] = check(group); });
    INFO(ranks << " ranks, " << way.name);
    for (const std::string& fault : faults) CHECK(fault == "");
  }
}

}  // namespace

TEST_CASE("threads: every collective, every dtype, nasty sizes") {
  for (const int ranks : kRankCounts) {
    for (const std::int64_t count : {0, 1, ranks - 1, ranks, ranks + 1, 101}) {
      if (ranks > 8 && count == 101) continue;
      check_on_ranks(ranks, [&](ProcessGroup& group) { return fault_of_all_collectives(group, count); });
    }
  }
}

TEST_CASE("threads: a rank may have many rows for one other, and none for the rest") {
  for (const int ranks : {1, 2, 3, 5})
    check_on_ranks(ranks, [](ProcessGroup& group) { return fault_of_uneven_rows(group, 7); });
}

TEST_CASE("threads: tensors may begin at odd places, and nothing beside them is written") {
  for (const int ranks : {2, 3, 5})
    for (const std::int64_t count : {1, 101})
      check_on_ranks(ranks, [&](ProcessGroup& group) { return fault_of_odd_places(group, count); });
}

TEST_CASE("one rank has every collective to itself") {
  ProcessGroup group(make_self_backend());
  for (const std::int64_t count : {0, 1, 101}) {
    CHECK(fault_of_all_collectives(group, count) == "");
    CHECK(fault_of_uneven_rows(group, count) == "");
    CHECK(fault_of_odd_places(group, count) == "");
  }
}

TEST_CASE("the checks of collectives see two ranks' blocks that change places, and what is added twice") {
  for (const std::string& fault : faults_of<SwappingBackend>(8))
    CHECK_THAT(fault, ContainsText("all_gather of f64[8, 101]: element 0 is"));
  for (const std::string& fault : faults_of<RepeatingBackend>(4))
    CHECK_THAT(fault, ContainsText("all_reduce sum of f64[101]: element 0 is"));
}

TEST_CASE("threads: groups of some ranks work at the same time, and have their own numbers") {
  check_on_ranks(7, [](ProcessGroup& group) { return fault_of_split(group); });
}

TEST_CASE("threads: an error of one rank is thrown, and no other waits for it") {
  CHECK(error_of([] {
          run_thread_ranks(3, [](ProcessGroup& group) {
            require(group.rank() != 1, "label 12 is out of range");
            group.barrier();
          });
        }) == "rank 1: label 12 is out of range");
  CHECK(error_of([] {
          run_thread_ranks(3, [](ProcessGroup& group) {
            if (group.rank() == 2) throw AgreedError("no such file");
            group.barrier();
          });
        }) == "no such file");
}

TEST_CASE("threads: messages of one tag arrive in order, and tags do not mix") {
  check_on_ranks(2, [](ProcessGroup& group) -> std::string {
    const Tensor a = Tensor::full({3}, 1.0), b = Tensor::full({3}, 2.0), c = Tensor::full({3}, 3.0);
    if (group.rank() == 0) {
      const auto first = group.send_async(a, 1, 5), second = group.send_async(b, 1, 5),
                 other = group.send_async(c, 1, 6);
      first->wait();
      second->wait();
      other->wait();
      return "";
    }
    const Tensor x = Tensor::zeros({3}), y = Tensor::zeros({3}), z = Tensor::zeros({3});
    group.receive(Out(z), 0, 6);
    group.receive(Out(x), 0, 5);
    group.receive(Out(y), 0, 5);
    const auto value = [](const Tensor& tensor) { return tensor.narrow(0, 0, 1).item(); };
    return value(x) == 1.0 && value(y) == 2.0 && value(z) == 3.0 ? "" : "messages in another order";
  });
}

TEST_CASE("threads: messages of one tag that are under way at once do not mix, however long they are") {
  check_on_ranks(2, [](ProcessGroup& group) -> std::string {
    const std::int64_t counts[] = {300000, 1, 0, 200000};  // of more segments than travel at once, and of fewer
    std::vector<Tensor> tensors;
    std::vector<std::unique_ptr<Work>> works;
    for (const std::int64_t count : counts) {
      const double value = group.rank() == 0 ? static_cast<double>(count + 1) : 0.0;
      tensors.push_back(Tensor::full({count}, value));
      works.push_back(group.rank() == 0 ? group.send_async(tensors.back(), 1, 5)
                                        : group.receive_async(Out(tensors.back()), 0, 5));
    }
    for (std::size_t i = works.size(); i-- > 0;) works[i]->wait();
    for (const Tensor& tensor : tensors)
      for (const double element : tensor.to_vector<double>())
        if (element != static_cast<double>(tensor.numel() + 1))
          return fmt::format("a message of {} has {}", tensor.numel(), element);
    return "";
  });
}

TEST_CASE("threads: a wait with a limit comes back, and goes on later") {
  check_on_ranks(2, [](ProcessGroup& group) -> std::string {
    const Tensor x = Tensor::full({5}, 1.0);
    if (group.rank() == 1) {
      const Tensor token = Tensor::zeros({1});
      group.receive(Out(token), 0);  // sent after the other rank's limit is over
    }
    const auto work = group.all_reduce_async(Out(x));
    if (group.rank() == 0) {
      if (work->wait_for(std::chrono::milliseconds(5))) return "it was complete without the other rank";
      group.send(Tensor::zeros({1}), 1);
    }
    work->wait();
    return x.narrow(0, 4, 1).item() == 2.0 ? "" : "a wrong sum";
  });
}
