// All-reduces by every algorithm with all ranks in one thread, over a network that delays at random.
#include "tandem/comm/backends/native/native_engine.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/comm/schedules/segment_options.h"
#include "tandem/core/out.h"
#include "tandem/core/tensor.h"
#include "tests/comm/simulated_transport.h"
#include "tests/comm/test_collectives.h"
#include "tests/support/catch.h"

#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::comm;
using tandem::test::SimulatedNetwork;

namespace {

/// Hosts of two ranks each.
std::vector<int> hosts_of_two(int ranks) {
  std::vector<int> nodes;
  for (int rank = 0; rank < ranks; ++rank) nodes.push_back(rank / 2);
  return nodes;
}

/// All ranks of one group; rank r's engine is engines[r].
struct SimulatedRanks {
  SimulatedRanks(int rank_count, const AllReduceAlgorithm& algorithm, SegmentOptions options, unsigned seed = 1)
      : network(seed), ranks(rank_count), schedule(algorithm.make(hosts_of_two(rank_count))) {
    for (int rank = 0; rank < ranks; ++rank) {
      engines.push_back(std::make_unique<NativeEngine>(network.transport_of(rank), ranks, rank, schedule, options));
    }
  }

  std::vector<std::shared_ptr<NativeOperation>> start(const std::vector<Tensor>& tensors, ReduceOp op) {
    std::vector<std::shared_ptr<NativeOperation>> operations;
    for (std::size_t rank = 0; rank < engines.size(); ++rank) {
      operations.push_back(engines[rank]->start(test::in_place(CollectiveKind::all_reduce, tensors[rank], op)));
    }
    return operations;
  }

  /// Polls all ranks in turn until all operations are complete.
  bool complete(const std::vector<std::shared_ptr<NativeOperation>>& operations) {
    for (int round = 0; round < 1000000; ++round) {
      bool all = true;
      for (std::size_t rank = 0; rank < engines.size(); ++rank) {
        engines[rank]->poll();
        all = all && engines[rank]->is_complete(*operations[rank]);
      }
      if (all) return true;
    }
    return false;
  }

  SimulatedNetwork network;
  int ranks;
  Schedule schedule;
  std::vector<std::unique_ptr<NativeEngine>> engines;
};

/// Whole numbers, different on every rank and at every place; of a product, such that it is exact.
double value_at(int rank, std::int64_t index, ReduceOp op) {
  if (op == ReduceOp::product) return (rank + index) % 5 == 0 ? -2.0 : 1.0;
  return static_cast<double>((rank * 37 + index * 13) % 101 - 50);
}

std::vector<Tensor> make_inputs(int ranks, std::int64_t count, DType dtype, ReduceOp op) {
  std::vector<Tensor> tensors;
  for (int rank = 0; rank < ranks; ++rank) {
    Tensor tensor = Tensor::empty({count}, {dtype});
    for (std::int64_t i = 0; i < count; ++i) tensor.narrow(0, i, 1).fill(value_at(rank, i, op));
    tensors.push_back(tensor);
  }
  return tensors;
}

double expected_at(int ranks, std::int64_t index, ReduceOp op) {
  return test::reduced(ranks, op, [&](int rank) { return value_at(rank, index, op); });
}

void check_all_reduce(int ranks, const AllReduceAlgorithm& algorithm, std::int64_t count, DType dtype, ReduceOp op,
                      SegmentOptions options, unsigned seed) {
  INFO(algorithm.name << ", ranks " << ranks << " count " << count << " dtype " << name_of(dtype) << " op "
                      << name_of(op));
  SimulatedRanks simulated(ranks, algorithm, options, seed);
  const auto tensors = make_inputs(ranks, count, dtype, op);
  const auto operations = simulated.start(tensors, op);
  REQUIRE(simulated.complete(operations));
  CHECK(simulated.network.violation().empty());
  CHECK(simulated.network.is_idle());
  int wrong = 0;
  for (const Tensor& tensor : tensors) {
    const auto values = tensor.to_vector<double>();
    for (std::int64_t i = 0; i < count; ++i) {
      const double expected = expected_at(ranks, i, op);
      // Sums of whole numbers are exact; the division of `average` rounds once, in the tensor's dtype.
      const double rounded = dtype == DType::f32 ? static_cast<double>(static_cast<float>(expected)) : expected;
      wrong += values[static_cast<std::size_t>(i)] != rounded;
    }
  }
  CHECK(wrong == 0);
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK(simulated.engines[static_cast<std::size_t>(rank)]->all_reduce_bytes_sent() ==
          elements_sent(simulated.schedule, rank, count) * size_of(dtype));
  }
}

const AllReduceAlgorithm& ring() { return all_reduce_algorithm("ring"); }

}  // namespace

TEST_CASE("every algorithm reduces exactly, for all rank counts and nasty sizes") {
  for (const AllReduceAlgorithm& algorithm : all_reduce_algorithms()) {
    for (int ranks = 1; ranks <= 17; ++ranks) {
      for (const std::int64_t count : {0, 1, 2, 3, 7, ranks - 1, ranks, ranks + 1, 130, 257}) {
        // Segments of 5 elements, so that a chunk is several segments long.
        check_all_reduce(ranks, algorithm, count, DType::f32, ReduceOp::sum, {5 * 4, 3}, static_cast<unsigned>(ranks));
      }
    }
  }
}

TEST_CASE("every algorithm has all operations in all reducible dtypes") {
  for (const AllReduceAlgorithm& algorithm : all_reduce_algorithms()) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::average, ReduceOp::min, ReduceOp::max}) {
      for (const DType dtype : {DType::f64, DType::f32, DType::i64, DType::i32}) {
        if (op == ReduceOp::average && !is_floating(dtype)) continue;
        for (const int ranks : {2, 3, 5}) check_all_reduce(ranks, algorithm, 101, dtype, op, {64, 2}, 7);
      }
    }
  }
}

TEST_CASE("segments of any length and any depth give the same bits") {
  for (const AllReduceAlgorithm& algorithm : all_reduce_algorithms()) {
    for (const std::int64_t segment_bytes : {1, 4, 12, 64, 1 << 20}) {
      for (const std::int64_t depth : {1, 2, 8})
        check_all_reduce(3, algorithm, 100, DType::f32, ReduceOp::sum, {segment_bytes, depth}, 11);
    }
  }
}

TEST_CASE("several operations may be under way, and be waited for in any order") {
  SimulatedRanks simulated(3, ring(), {16, 2});
  const auto first = make_inputs(3, 50, DType::f32, ReduceOp::sum),
             second = make_inputs(3, 31, DType::f64, ReduceOp::max);
  const auto first_operations = simulated.start(first, ReduceOp::sum),
             second_operations = simulated.start(second, ReduceOp::max);
  REQUIRE(simulated.complete(second_operations));
  REQUIRE(simulated.complete(first_operations));
  CHECK(simulated.network.violation().empty());
  for (const Tensor& tensor : first) CHECK(tensor.narrow(0, 49, 1).item() == expected_at(3, 49, ReduceOp::sum));
  for (const Tensor& tensor : second) CHECK(tensor.narrow(0, 30, 1).item() == expected_at(3, 30, ReduceOp::max));
}

TEST_CASE("NaN passes min and max, and zeros and NaN have the same bits on all ranks") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const AllReduceAlgorithm& algorithm : all_reduce_algorithms()) {
    for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
      for (int odd = 0; odd < 4; ++odd) {
        INFO(algorithm.name << " " << name_of(op) << " odd rank " << odd);
        SimulatedRanks simulated(4, algorithm, {16, 2});
        std::vector<Tensor> tensors;
        for (int rank = 0; rank < 4; ++rank) {
          tensors.push_back(rank == odd ? Tensor::from(std::vector{kNan, -0.0f, -1.0f}, {3})
                                        : Tensor::from(std::vector{1.0f, 0.0f, kNan}, {3}));
        }
        REQUIRE(simulated.complete(simulated.start(tensors, op)));
        for (const Tensor& tensor : tensors) {
          const auto values = tensor.to_vector<float>();
          CHECK(std::isnan(values[0]));
          CHECK(std::isnan(values[2]));
          CHECK(std::signbit(values[1]) == std::signbit(tensors.front().to_vector<float>()[1]));
        }
      }
    }
  }
}

TEST_CASE("scratch memory is counted as comm, is small and is given back") {
  const auto before = memory_stats().current_of(MemoryTag::comm);
  {
    SimulatedRanks simulated(2, ring(), {1024, 4});
    const auto tensors = make_inputs(2, 4096, DType::f32, ReduceOp::sum);
    const auto operations = simulated.start(tensors, ReduceOp::sum);
    CHECK(memory_stats().current_of(MemoryTag::comm) - before == 2 * 4 * 1024);
    REQUIRE(simulated.complete(operations));
  }
  CHECK(memory_stats().current_of(MemoryTag::comm) == before);
}
