// Collectives through shared memory, by ranks that are threads: what is particular about them. That all of them are
// right in all dtypes and sizes is in test_thread_collectives.cpp.
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/comm/ddp/hash.h"
#include "tandem/comm/transports/shared_memory/window.h"
#include "tandem/core/out.h"
#include "tests/comm/collective_checks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>

using namespace tandem;
using namespace tandem::comm;
using tandem::test::ContainsText;
using tandem::test::error_of;
using tandem::test::fault_of_moves;

namespace {

/// The first fault of any rank.
std::string fault_on_ranks(int ranks, const NativeOptions& options,
                           const std::function<std::string(ProcessGroup&)>& body) {
  std::mutex mutex;
  std::string first;
  run_thread_ranks(ranks, options, [&](ProcessGroup& group) {
    const std::string fault = body(group);
    const std::lock_guard lock(mutex);
    if (first.empty() && !fault.empty()) first = fmt::format("rank {}: {}", group.rank(), fault);
  });
  return first;
}

std::string fault_on_ranks(int ranks, const std::function<std::string(ProcessGroup&)>& body) {
  return fault_on_ranks(ranks, {.name = "threads"}, body);
}

/// Through the window, where threads would read each other's memory.
const NativeOptions kThroughWindow{.name = "threads", .single_copy = SingleCopy::off};

/// Whole numbers, whose sums are exact.
double number_at(int rank, std::int64_t index) { return static_cast<double>((rank * 7 + index * 13) % 41 - 20); }

void fill_numbers(const Tensor& tensor, int rank, std::int64_t first = 0) {
  auto* const values = Out(tensor).data<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) values[i] = static_cast<float>(number_at(rank, first + i));
}

std::string fault_of_sum(const Tensor& tensor, int ranks) {
  const auto* const values = tensor.data<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    double sum = 0.0;
    for (int rank = 0; rank < ranks; ++rank) sum += number_at(rank, i);
    if (static_cast<double>(values[i]) != sum)
      return fmt::format("element {} of {} is {}, not {}", i, tensor.numel(), values[i], sum);
  }
  return "";
}

constexpr std::int64_t kSegment = Window::kSegmentBytes / 4, kCell = Cell::kPayloadBytes / 4;

}  // namespace

TEST_CASE("window: private tensors of all sizes about cells and segments are summed exactly") {
  for (const int ranks : {2, 3, 4, 7}) {
    const std::string fault = fault_on_ranks(ranks, [](ProcessGroup& group) -> std::string {
      for (const std::int64_t count : {kCell - 1, kCell, kCell + 1, kSegment - 1, kSegment, kSegment + 1,
                                       2 * kSegment + 7, 5 * kSegment + 1, std::int64_t{99991}}) {
        for (const std::int64_t shift : {0, 1}) {  // and at odd addresses
          const Tensor whole = Tensor::full({count + 2}, -5.0), tensor = whole.narrow(0, shift, count);
          fill_numbers(tensor, group.rank());
          group.all_reduce(Out(tensor));
          if (auto wrong = fault_of_sum(tensor, group.size()); !wrong.empty()) return wrong;
          const Tensor behind = whole.narrow(0, shift + count, 1);
          if (behind.item() != -5.0) return "an element behind the tensor was written";
        }
      }
      return "";
    });
    CHECK(fault == "");
  }
}

TEST_CASE("window: shared tensors, parts of them and a mixture with private ones are summed exactly") {
  for (const int ranks : {2, 3, 4}) {
    const std::string fault = fault_on_ranks(ranks, [](ProcessGroup& group) -> std::string {
      for (const std::int64_t count : {std::int64_t{1}, kCell + 1, kSegment + 3, 3 * kSegment}) {
        const Tensor whole = group.shared_zeros({count + 8});
        if (whole.numel() != count + 8 || whole.narrow(0, count, 1).item() != 0.0) return "no zeros";
        for (const std::int64_t shift : {0, 3}) {
          const Tensor tensor = whole.narrow(0, shift + group.rank(), count);  // at another place on each rank
          fill_numbers(tensor, group.rank());
          group.all_reduce(Out(tensor));
          if (auto wrong = fault_of_sum(tensor, group.size()); !wrong.empty()) return wrong;
        }
        const Tensor own = Tensor::zeros({count}), shared = whole.narrow(0, 0, count);
        const Tensor& mixed = group.rank() == 0 ? own : shared;
        fill_numbers(mixed, group.rank());
        group.all_reduce(Out(mixed));
        if (auto wrong = fault_of_sum(mixed, group.size()); !wrong.empty()) return "mixed: " + wrong;
        fill_numbers(own, group.rank());
        group.all_reduce(own, Out(shared));
        if (auto wrong = fault_of_sum(shared, group.size()); !wrong.empty()) return "out of place: " + wrong;
      }
      return "";
    });
    CHECK(fault == "");
  }
}

TEST_CASE("window: shared tensors are combined where they are") {
  // Each rank's data lie where the other one can read them: rank 1's address is one part behind rank 0's.
  std::vector<const float*> data(2);
  run_thread_ranks(2, [&](ProcessGroup& group) {
    const Tensor tensor = group.shared_zeros({1024});
    data[static_cast<std::size_t>(group.rank())] = tensor.data<float>();
    group.barrier();
  });
  CHECK(data[1] - data[0] == 1024);
  run_thread_ranks(2, {.name = "threads", .shared_memory = false}, [&](ProcessGroup& group) {
    const Tensor tensor = group.shared_zeros({1024});
    data[static_cast<std::size_t>(group.rank())] = tensor.data<float>();
    group.barrier();
    if (group.rank() == 0) CHECK(data[1] - data[0] != 1024);
    group.barrier();
  });
}

TEST_CASE("window: sums of random numbers have the same bits on all ranks, and as many ranks the same ones") {
  for (const int ranks : {2, 3, 4}) {
    std::mutex mutex;
    std::vector<std::uint64_t> hashes;
    run_thread_ranks(ranks, [&](ProcessGroup& group) {
      for (const bool shared : {false, true}) {
        std::mt19937 random(static_cast<unsigned>(group.rank()));
        const std::int64_t count = 2 * kSegment + 77;
        const Tensor tensor = shared ? group.shared_zeros({count}) : Tensor::zeros({count});
        auto* const values = Out(tensor).data<float>();
        std::normal_distribution<float> normal;
        for (std::int64_t i = 0; i < count; ++i) values[i] = normal(random);
        group.all_reduce(Out(tensor), ReduceOp::average);
        const std::lock_guard lock(mutex);
        hashes.push_back(hash_tensor(tensor));
      }
    });
    CHECK(hashes == std::vector<std::uint64_t>(hashes.size(), hashes.front()));
  }
}

TEST_CASE("window: halves are summed in f32 and rounded once") {
  // 2048 + 1 + 1 + 1: f16 has no odd numbers there, so that rounding after each sum would stay at 2048.
  for (const std::int64_t count : {std::int64_t{5}, kSegment}) {
    const std::string fault = fault_on_ranks(4, [&](ProcessGroup& group) -> std::string {
      const Tensor tensor = Tensor::full({count}, group.rank() == 0 ? 2048.0 : 1.0, {.dtype = DType::f16});
      group.all_reduce(Out(tensor));
      const double last = tensor.narrow(0, count - 1, 1).item();
      return last == 2052.0 ? "" : fmt::format("{} in place of 2052", last);  // 2051, to even
    });
    CHECK(fault == "");
  }
}

TEST_CASE("window: two groups of the same ranks, several operations each, ended in other orders") {
  const std::string fault = fault_on_ranks(3, [](ProcessGroup& group) -> std::string {
    const auto second = group.split(0);
    std::vector<Tensor> tensors;
    std::vector<std::unique_ptr<Work>> works;
    for (const std::int64_t count : {std::int64_t{3}, 2 * kSegment, std::int64_t{0}, kSegment + 1, std::int64_t{64}}) {
      for (ProcessGroup* const each : {&group, second.get()}) {
        tensors.push_back(count == kSegment + 1 ? each->shared_zeros({count}) : Tensor::zeros({count}));
        fill_numbers(tensors.back(), group.rank());
        works.push_back(each->all_reduce_async(Out(tensors.back())));
      }
    }
    // All are polled until all are through: waits for one group while others wait for the other would not end.
    for (bool complete = false; !complete;) {
      complete = true;
      for (const auto& work : works) complete = work->poll() && complete;
      std::this_thread::yield();
    }
    for (const Tensor& tensor : tensors)
      if (auto wrong = fault_of_sum(tensor, 3); !wrong.empty()) return wrong;
    return "";
  });
  CHECK(fault == "");
}

TEST_CASE("window: ranks that call different collectives are told which") {
  const auto error = [](const std::function<void(ProcessGroup&)>& body) {
    return error_of([&] { run_thread_ranks(2, body); });
  };
  CHECK_THAT(
      error([](ProcessGroup& group) { group.all_reduce(Out(Tensor::zeros({5 + group.rank()}))); }),
      ContainsText("all_reduce sum f32[5] on rank 0 meets all_reduce sum f32[6] on rank 1: all ranks must call"));
  CHECK_THAT(error([](ProcessGroup& group) {
               group.all_reduce(Out(Tensor::zeros({5})), group.rank() == 0 ? ReduceOp::sum : ReduceOp::max);
             }),
             ContainsText("all_reduce sum f32[5] on rank 0 meets all_reduce max f32[5] on rank 1"));
  CHECK_THAT(error([](ProcessGroup& group) { group.reduce(Out(Tensor::zeros({2})), group.rank()); }),
             ContainsText("reduce sum f32[2] to rank 0 on rank 0 meets"));
}

TEST_CASE("window: after a mismatch, which all ranks are told, the group goes on") {
  const std::string fault = fault_on_ranks(3, [](ProcessGroup& group) -> std::string {
    // The last rank comes late: the others' offers are there, and its own call fails at once.
    if (group.rank() == 2) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::string text = error_of([&] { group.all_reduce(Out(Tensor::zeros({5 + group.rank()}))); });
    if (text.find("f32[5] on rank 0 meets all_reduce sum f32[6] on rank 1") == std::string::npos) return text;
    if (group.all_gather_bytes("x").size() != 3) return "messages fail after it";
    const Tensor tensor = Tensor::zeros({kSegment + 3});
    fill_numbers(tensor, group.rank());
    group.all_reduce(Out(tensor));
    return fault_of_sum(tensor, 3);
  });
  CHECK(fault == "");
}

TEST_CASE("window: pieces of all sizes about cells and segments arrive, and nothing beside them is written") {
  for (const int ranks : {2, 3, 5}) {
    for (const std::int64_t count : {kCell / ranks - 4 * ranks, kCell / ranks, kCell + 1, kSegment / ranks,
                                     kSegment - 1, kSegment, kSegment + 1, 3 * kSegment + 7}) {
      const std::string fault =
          fault_on_ranks(ranks, kThroughWindow, [&](ProcessGroup& group) { return fault_of_moves(group, count); });
      INFO(ranks << " ranks, " << count << " elements");
      CHECK(fault == "");
    }
  }
}

TEST_CASE("window: pieces that differ much in size, some of them empty, arrive by rows") {
  for (const NativeOptions& options : {kThroughWindow, NativeOptions{.name = "threads"}}) {
    const std::string fault = fault_on_ranks(3, options, [](ProcessGroup& group) -> std::string {
      const int rank = group.rank();
      // Rank 1 has nothing for anybody, and rank 2 most of it.
      const std::vector<std::int64_t> rows_to = rank == 0   ? std::vector<std::int64_t>{1, 0, 70000}
                                                : rank == 1 ? std::vector<std::int64_t>{0, 0, 0}
                                                            : std::vector<std::int64_t>{200000, 3, 0};
      const Tensor sent = Tensor::empty({rows_to[0] + rows_to[1] + rows_to[2], 2});
      fill_numbers(sent, rank);
      const Tensor received = group.all_to_all_rows(sent, rows_to);
      const std::int64_t expected_rows[] = {200001, 3, 70000};
      if (received.shape() != Shape{expected_rows[rank], 2}) return "a wrong shape";
      const auto value = [&](std::int64_t row) { return received.narrow(0, row, 1).select(1, 1).item(); };
      if (rank == 0 &&
          (value(0) != number_at(0, 1) || value(1) != number_at(2, 1) || value(200000) != number_at(2, 399999)))
        return "rank 0 has wrong rows";
      if (rank == 1 && value(2) != number_at(2, 2 * 200002 + 1)) return "rank 1 has wrong rows";
      if (rank == 2 && value(69999) != number_at(0, 2 * 70000 + 1)) return "rank 2 has wrong rows";
      const auto rows = group.all_gather_rows(sent);
      if (rows[0].shape()[0] != 70001 || rows[1].numel() != 0 || rows[2].shape()[0] != 200003)
        return "wrong rows of all";
      return rows[2].narrow(0, 200002, 1).select(1, 0).item() == number_at(2, 2 * 200002) ? ""
                                                                                          : "wrong elements of all";
    });
    CHECK(fault == "");
  }
}

TEST_CASE("window: parts of a reduce_scatter have the bits of an all_reduce, which adds in the order of the ranks") {
  for (const NativeOptions& options : {kThroughWindow, NativeOptions{.name = "threads"}}) {
    for (const std::int64_t count : {std::int64_t{1}, std::int64_t{301}, kCell, kSegment / 3, kSegment + 5}) {
      const std::string fault = fault_on_ranks(3, options, [&](ProcessGroup& group) -> std::string {
        std::mt19937 random(static_cast<unsigned>(group.rank()));
        std::normal_distribution<float> normal;
        const Tensor parts = Tensor::empty({3, count}), whole = Tensor::full({count + 2}, -9.0);
        auto* const values = Out(parts).data<float>();
        for (std::int64_t i = 0; i < parts.numel(); ++i) values[i] = normal(random);
        const Tensor part = whole.narrow(0, 1, count);
        group.reduce_scatter_async(parts, Out(part), ReduceOp::average)->wait();
        group.all_reduce(Out(parts), ReduceOp::average);
        if (part.to_vector<float>() != parts.select(0, group.rank()).to_vector<float>()) return "other bits";
        const bool is_whole = whole.narrow(0, 0, 1).item() == -9.0 && whole.narrow(0, count + 1, 1).item() == -9.0;
        return is_whole ? "" : "an element beside the part was written";
      });
      INFO(count);
      CHECK(fault == "");
    }
  }
}

TEST_CASE("window: a rank that expects another size is told, and the group goes on") {
  for (const std::int64_t factor : {1, 5000, 500000}) {
    for (const NativeOptions& options : {kThroughWindow, NativeOptions{.name = "threads"}}) {
      const std::string fault = fault_on_ranks(3, options, [&](ProcessGroup& group) -> std::string {
        const std::int64_t count = factor + (group.rank() == 2 ? factor : 0);
        const std::string text = error_of([&] { group.all_to_all(Tensor::zeros({3, count})); });
        const std::string expected =
            fmt::format("all_to_all f32[{0}, {0}, {0}]: rank {1} has {2} bytes for rank {3}, which expects {4}", count,
                        group.rank() == 2 ? 0 : 2, 4 * (3 * factor - count), group.rank(), 4 * count);
        if (text != expected) return "other text: " + text;
        const Tensor tensor = Tensor::zeros({kSegment + 3});
        fill_numbers(tensor, group.rank());
        group.all_reduce(Out(tensor));
        return fault_of_sum(tensor, 3);
      });
      CHECK(fault == "");
    }
  }
}

TEST_CASE("the environment says whether ranks read each other's memory") {
  const auto wish = [](const char* text) {
    return native_options("native", "auto", "",
                          [=](const char* name) { return std::string(name) == "TANDEM_SINGLE_COPY" ? text : nullptr; })
        .single_copy;
  };
  CHECK(wish(nullptr) == SingleCopy::automatic);
  CHECK(wish("auto") == SingleCopy::automatic);
  CHECK(wish("on") == SingleCopy::on);
  CHECK(wish("off") == SingleCopy::off);
  CHECK(error_of([&] { wish("1"); }) == "TANDEM_SINGLE_COPY=1: choose auto, on or off");
}

TEST_CASE("window: an operation that nobody waits for goes on when others do, dropped by one rank or by all") {
  for (const bool by_all : {true, false}) {
    for (const std::int64_t count : {std::int64_t{1}, kCell + 1, 3 * kSegment + 1}) {
      const std::string fault = fault_on_ranks(2, [&](ProcessGroup& group) -> std::string {
        const Tensor dropped = Tensor::zeros({count}), tensor = Tensor::zeros({99});
        fill_numbers(dropped, group.rank());
        fill_numbers(tensor, group.rank());
        auto work = group.all_reduce_async(Out(dropped));
        if (by_all || group.rank() == 1) work.reset();
        group.all_reduce(Out(tensor));
        if (work) work->wait();
        const std::string wrong = fault_of_sum(dropped, 2);
        return wrong.empty() ? fault_of_sum(tensor, 2) : wrong;
      });
      CHECK(fault == "");
    }
  }
}

TEST_CASE("window: shared tensors of different sizes are refused on all ranks") {
  for (const std::int64_t more : {1, 976, 98000}) {
    const std::string fault = fault_on_ranks(3, [&](ProcessGroup& group) -> std::string {
      const std::int64_t count = 1024 + (group.rank() == 1 ? more : 0);
      const std::string text = error_of([&] { group.shared_zeros({count}); });
      const std::string expected =
          fmt::format("shared_zeros: rank 0 asks for 4096 bytes, and rank 1 for {}; all ranks must ask for the same",
                      4 * (1024 + more));
      return text.find(expected) != std::string::npos ? "" : text;
    });
    CHECK(fault == "");
  }
  CHECK_THAT(error_of([] {
               run_thread_ranks(2, [](ProcessGroup& group) { group.shared_zeros({group.rank() == 0 ? 0 : 8}); });
             }),
             ContainsText("rank 0 asks for 0 bytes, and rank 1 for 32"));
}
