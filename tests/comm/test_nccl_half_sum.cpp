// Sums of halves by the nccl backend: added in f32 in the order of the ranks, rounded once, the same bits everywhere.
#include "tandem/comm/backends/nccl/nccl_backend.h"
#include "tandem/comm/process_group.h"
#include "tandem/core/out.h"
#include "tandem/core/random.h"
#include "tests/comm/meeting.h"
#include "tests/comm/test_collectives.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <algorithm>
#include <utility>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

/// Knows its place, and nothing else.
class PlacedBackend final : public Backend {
 public:
  explicit PlacedBackend(Place place) : place_(place) {}
  std::string_view name() const override { return "placed"; }
  Place place() const override { return place_; }
  std::unique_ptr<Work> start(const Collective&) override { fail("not here"); }
  std::unique_ptr<Backend> subgroup(std::span<const int>) override { fail("not here"); }

 private:
  Place place_;
};

std::unique_ptr<Backend> backend_of(Meeting& meeting, int rank, Device device) {
  return make_nccl_backend(std::make_unique<PlacedBackend>(Place{.rank = rank, .size = meeting.size()}),
                           std::make_unique<MeetingCommunicator>(meeting, rank), device);
}

/// What each rank brings: N(0, 1), or by turns 2^15, something small and -2^15, of which the order of the ranks decides
/// what is left.
Tensor elements_of(int rank, std::int64_t count, DType dtype) {
  const RandomKey key{.seed = static_cast<std::uint32_t>(rank)};
  const Tensor result = Tensor::empty({count}, {.dtype = dtype});
  dispatch_floating(dtype, "elements", [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto random = static_cast<float>(key.normal(static_cast<std::uint64_t>(i)));
      const float by_turns[] = {0x1p15f, 0x1p-9f * random, -0x1p15f};
      Out(result).data<T>()[i] = T(i % 2 == 0 ? random : by_turns[(i / 2 + rank) % 3]);
    }
  });
  return result;
}

/// Added in f32 by rank, divided there, rounded once.
Tensor expected_of(const std::vector<Tensor>& inputs, ReduceOp op) {
  const Tensor result = Tensor::empty(inputs.front().shape(), inputs.front().options());
  dispatch_floating(result.dtype(), "expected", [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::int64_t i = 0; i < result.numel(); ++i) {
      auto sum = static_cast<float>(inputs.front().data<T>()[i]);
      for (std::size_t rank = 1; rank < inputs.size(); ++rank) sum += static_cast<float>(inputs[rank].data<T>()[i]);
      Out(result).data<T>()[i] = T(op == ReduceOp::average ? sum / static_cast<float>(inputs.size()) : sum);
    }
  });
  return result;
}

bool equal_bytes(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return false;
  return a.numel() == 0 ||
         std::memcmp(a.raw_data(), b.raw_data(), static_cast<std::size_t>(a.numel() * size_of(a.dtype()))) == 0;
}

/// Runs the all-reduce on all ranks, of elements that begin `offset` elements into their memory and are written on the
/// current stream just before. What each rank has then, on the CPU, the elements around included.
std::vector<Tensor> reduce(Meeting& meeting, const std::vector<Tensor>& inputs, ReduceOp op, std::int64_t offset = 0,
                           Device device = {}) {
  const std::int64_t count = inputs.front().numel();
  std::vector<Tensor> sources, results(inputs.size());
  for (const Tensor& input : inputs) sources.push_back(input.to(device));
  run_ranks(meeting, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    const PoisonScope poison;  // what comes in must have come in
    TensorOptions options = sources[index].options();
    const Tensor whole = Tensor::full({offset + count + 3}, 7.0, options);
    const Tensor elements = whole.narrow(0, offset, count);
    const auto backend = backend_of(meeting, rank, device);
    elements.copy_from(sources[index]);
    backend->run(in_place(CollectiveKind::all_reduce, elements, op));
    synchronize(device);  // the simulator does not take the backend's polls for an order
    results[index] = whole.to(Device{});
  });
  return results;
}

/// What is wrong with the all-reduce, or nothing.
std::string check(int ranks, std::int64_t count, DType dtype, ReduceOp op, std::int64_t offset, Device device) {
  std::vector<Tensor> inputs;
  for (int rank = 0; rank < ranks; ++rank) inputs.push_back(elements_of(rank, count, dtype));
  Meeting meeting(ranks);
  const std::vector<Tensor> results = reduce(meeting, inputs, op, offset, device);
  const Tensor expected = expected_of(inputs, op);
  for (int rank = 0; rank < ranks; ++rank) {
    if (!meeting.seat(rank).failure.empty()) return meeting.seat(rank).failure;
    const Tensor& whole = results[static_cast<std::size_t>(rank)];
    if (!equal_bytes(whole.narrow(0, offset, count), expected)) return fmt::format("rank {} has other bits", rank);
    for (std::int64_t i = 0; i < whole.numel(); ++i) {
      const bool is_around = i < offset || i >= offset + count;
      if (is_around && whole.narrow(0, i, 1).item() != 7.0) return fmt::format("rank {} wrote outside at {}", rank, i);
    }
  }
  return {};
}

using Calls = std::vector<std::string>;

}  // namespace

TEST_CASE("nccl: halves are added in f32 by rank and rounded once, on 2 to 5 ranks") {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::average}) {
        for (const std::int64_t count : {0, 1, 2, 7, 8, 15, 16, 17, 31, 39, 40, 41, 80, 1001}) {
          for (const std::int64_t offset : {0, 3}) {
            INFO(ranks << " ranks, " << comm::name_of(op) << " of " << tandem::name_of(dtype) << '[' << count << "] at "
                       << offset);
            CHECK(check(ranks, count, dtype, op, offset, {}) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("nccl: halves on a device are added in f32, after what the current stream holds", "[cuda]") {
  if (!has_gpu()) return;
  for (const int ranks : {2, 3}) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      for (const std::int64_t count : {1, 48, 1001}) {
        INFO(ranks << " ranks, " << tandem::name_of(dtype) << '[' << count << ']');
        CHECK(check(ranks, count, dtype, ReduceOp::average, count % 3, kGpu) == "");
      }
    }
  }
}

TEST_CASE("nccl: a sum that halves would lose, and an average whose sum is no half") {
  std::vector<Tensor> inputs, large;
  for (int rank = 0; rank < 5; ++rank) {
    inputs.push_back(Tensor::full({45}, rank == 0 ? 2048.0 : 1.0, {.dtype = DType::f16}));
    large.push_back(Tensor::full({45}, 65504.0, {.dtype = DType::f16}));
  }
  Meeting sums(5), averages(5);
  for (const Tensor& result : reduce(sums, inputs, ReduceOp::sum))
    CHECK(result.narrow(0, 0, 45).to_vector<double>() == std::vector<double>(45, 2052.0));
  for (const Tensor& result : reduce(averages, large, ReduceOp::average))
    CHECK(result.narrow(0, 0, 45).to_vector<double>() == std::vector<double>(45, 65504.0));
}

TEST_CASE("nccl: a sum of halves sends no more than a ring does, and takes one round where there is little") {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    Meeting meeting(ranks), small(ranks);
    const std::int64_t count = ranks * 8 * 10;
    reduce(meeting, std::vector<Tensor>(meeting.seats.size(), elements_of(0, count, DType::f16)), ReduceOp::sum);
    reduce(small, std::vector<Tensor>(small.seats.size(), elements_of(0, 15, DType::f16)), ReduceOp::sum);
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(meeting.seat(rank).calls == Calls{"exchange", "all_gather"});
      CHECK(meeting.seat(rank).bytes_sent == 2 * (ranks - 1) * count / ranks * 2);
      CHECK(small.seat(rank).calls == Calls{"exchange"});
      CHECK(small.seat(rank).bytes_sent == (ranks - 1) * 15 * 2);
    }
  }
}

TEST_CASE("nccl: other sums, and what one rank has, go to NCCL as they are") {
  const auto calls_of = [](int ranks, DType dtype, ReduceOp op) {
    Meeting meeting(ranks);
    const Tensor tensor = Tensor::zeros({40}, {.dtype = dtype});
    reduce(meeting, std::vector<Tensor>(meeting.seats.size(), tensor), op);
    return meeting.seat(0).calls;
  };
  CHECK(calls_of(2, DType::f16, ReduceOp::max) == Calls{"all_reduce 40 f16 max"});
  CHECK(calls_of(2, DType::bf16, ReduceOp::min) == Calls{"all_reduce 40 bf16 min"});
  CHECK(calls_of(2, DType::f32, ReduceOp::average) == Calls{"all_reduce 40 f32 average"});
  CHECK(calls_of(2, DType::f64, ReduceOp::sum) == Calls{"all_reduce 40 f64 sum"});
  CHECK(calls_of(2, DType::i32, ReduceOp::sum) == Calls{"all_reduce 40 i32 sum"});
  CHECK(calls_of(1, DType::f16, ReduceOp::average) == Calls{"all_reduce 40 f16 average"});
}

TEST_CASE("nccl: products of halves go to NCCL in f32, and sums and extremes as they are") {
  const auto calls_of = [](DType dtype, ReduceOp op) {
    Meeting meeting(2);
    run_ranks(meeting, [&](int rank) {
      ProcessGroup group(backend_of(meeting, rank, {}));
      group.all_reduce(Out(Tensor::full({40}, 2.0, {.dtype = dtype})), op);
      group.all_reduce_async(Out(Tensor::full({41}, 2.0, {.dtype = dtype})), op)->wait();
    });
    return meeting.seat(0).calls;
  };
  for (const DType dtype : {DType::f16, DType::bf16}) {
    CHECK(calls_of(dtype, ReduceOp::product) == Calls{"all_reduce 40 f32 product", "all_reduce 41 f32 product"});
    CHECK(calls_of(dtype, ReduceOp::min) == Calls{fmt::format("all_reduce 40 {} min", tandem::name_of(dtype)),
                                                  fmt::format("all_reduce 41 {} min", tandem::name_of(dtype))});
    CHECK(calls_of(dtype, ReduceOp::sum) == Calls{"exchange", "all_gather", "exchange", "all_gather"});
  }
}

TEST_CASE("nccl: an error between the rounds ends a sum of halves") {
  Meeting meeting(2);
  for (Meeting::Seat& seat : meeting.seats) seat.error_once_called = "remote process exited";
  reduce(meeting, std::vector<Tensor>(2, elements_of(0, 40, DType::f16)), ReduceOp::sum);
  for (const Meeting::Seat& seat : meeting.seats) {
    CHECK(seat.failure == "nccl: all_reduce sum f16[40]: remote process exited");
    CHECK(seat.calls == Calls{"exchange", "abort"});
  }
}
