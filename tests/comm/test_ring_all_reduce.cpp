// The ring's state machine with all ranks in one process, over a network that delays at random.
#include "tandem/comm/backends/ring/ring_backend.h"
#include "tandem/comm/schedules/ring_schedule.h"
#include "tandem/core/out.h"
#include "tandem/core/tensor.h"
#include "tests/comm/simulated_transport.h"
#include "tests/support/catch.h"

#include <cmath>

using namespace tandem;
using namespace tandem::comm;
using tandem::test::SimulatedNetwork;

namespace {

/// All ranks of one ring; rank r's engine is engines[r].
struct SimulatedRing {
  SimulatedRing(int rank_count, RingOptions options, unsigned seed = 1) : network(seed), ranks(rank_count) {
    for (int rank = 0; rank < ranks; ++rank) {
      engines.push_back(std::make_unique<RingEngine>(network.transport_of(rank), ranks, rank, options));
    }
  }

  std::vector<std::shared_ptr<RingAllReduce>> start(const std::vector<Tensor>& tensors, ReduceOp op) {
    std::vector<std::shared_ptr<RingAllReduce>> operations;
    for (std::size_t rank = 0; rank < engines.size(); ++rank) {
      const Tensor& tensor = tensors[rank];
      operations.push_back(engines[rank]->start({Out(tensor).raw_data(), tensor.numel(), tensor.dtype(), tensor}, op));
    }
    return operations;
  }

  /// Polls all ranks in turn until all operations are complete.
  bool complete(const std::vector<std::shared_ptr<RingAllReduce>>& operations) {
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
  std::vector<std::unique_ptr<RingEngine>> engines;
};

/// Whole numbers, different on every rank and at every place.
double value_at(int rank, std::int64_t index) { return static_cast<double>((rank * 37 + index * 13) % 101 - 50); }

std::vector<Tensor> make_inputs(int ranks, std::int64_t count, DType dtype) {
  std::vector<Tensor> tensors;
  for (int rank = 0; rank < ranks; ++rank) {
    Tensor tensor = Tensor::empty({count}, {dtype});
    for (std::int64_t i = 0; i < count; ++i) tensor.narrow(0, i, 1).fill(value_at(rank, i));
    tensors.push_back(tensor);
  }
  return tensors;
}

double expected_at(int ranks, std::int64_t index, ReduceOp op) {
  double result = value_at(0, index);
  for (int rank = 1; rank < ranks; ++rank) {
    const double value = value_at(rank, index);
    if (op == ReduceOp::min)
      result = std::min(result, value);
    else if (op == ReduceOp::max)
      result = std::max(result, value);
    else
      result += value;
  }
  return op == ReduceOp::average ? result / ranks : result;
}

void check_ring(int ranks, std::int64_t count, DType dtype, ReduceOp op, RingOptions options, unsigned seed) {
  INFO("ranks " << ranks << " count " << count << " dtype " << name_of(dtype) << " op " << name_of(op));
  SimulatedRing ring(ranks, options, seed);
  const auto tensors = make_inputs(ranks, count, dtype);
  const auto operations = ring.start(tensors, op);
  REQUIRE(ring.complete(operations));
  CHECK(ring.network.violation().empty());
  CHECK(ring.network.is_idle());
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
    CHECK(ring.engines[static_cast<std::size_t>(rank)]->bytes_sent() ==
          ring_elements_sent(count, ranks, rank) * size_of(dtype));
  }
}

}  // namespace

TEST_CASE("the ring reduces exactly, for all rank counts and nasty sizes") {
  for (int ranks = 1; ranks <= 17; ++ranks) {
    for (const std::int64_t count : {0, 1, 2, 3, 7, ranks - 1, ranks, ranks + 1, 130, 257}) {
      // Segments of 5 elements, so that a chunk is several segments long.
      check_ring(ranks, count, DType::f32, ReduceOp::sum, {5 * 4, 3}, static_cast<unsigned>(ranks));
    }
  }
}

TEST_CASE("the ring has all operations in all reducible dtypes") {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::average, ReduceOp::min, ReduceOp::max}) {
    for (const DType dtype : {DType::f64, DType::f32, DType::i64, DType::i32}) {
      if (op == ReduceOp::average && !is_floating(dtype)) continue;
      for (const int ranks : {2, 3, 5}) check_ring(ranks, 101, dtype, op, {64, 2}, 7);
    }
  }
}

TEST_CASE("segments of any length and any depth give the same bits") {
  for (const std::int64_t segment_bytes : {1, 4, 12, 64, 1 << 20}) {
    for (const std::int64_t depth : {1, 2, 8}) {
      check_ring(3, 100, DType::f32, ReduceOp::sum, {segment_bytes, depth}, 11);
    }
  }
}

TEST_CASE("several ring operations may be under way, and be waited for in any order") {
  SimulatedRing ring(3, {16, 2});
  const auto first = make_inputs(3, 50, DType::f32), second = make_inputs(3, 31, DType::f64);
  const auto first_operations = ring.start(first, ReduceOp::sum), second_operations = ring.start(second, ReduceOp::max);
  REQUIRE(ring.complete(second_operations));
  REQUIRE(ring.complete(first_operations));
  CHECK(ring.network.violation().empty());
  for (const Tensor& tensor : first) CHECK(tensor.to_vector<double>()[49] == expected_at(3, 49, ReduceOp::sum));
  for (const Tensor& tensor : second) CHECK(tensor.to_vector<double>()[30] == expected_at(3, 30, ReduceOp::max));
}

TEST_CASE("min and max pass NaN on, whichever rank has it") {
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    for (std::size_t rank = 0; rank < 3; ++rank) {
      SimulatedRing ring(3, {});
      const auto tensors = make_inputs(3, 3, DType::f32);
      tensors[rank].fill(NAN);
      REQUIRE(ring.complete(ring.start(tensors, op)));
      for (const Tensor& tensor : tensors) {
        for (const double value : tensor.to_vector<double>()) CHECK(std::isnan(value));
      }
    }
  }
}

TEST_CASE("the ring's scratch memory is counted as comm, is small and is given back") {
  const auto before = memory_stats().current_of(MemoryTag::comm);
  {
    SimulatedRing ring(2, {1024, 4});
    const auto tensors = make_inputs(2, 4096, DType::f32);
    const auto operations = ring.start(tensors, ReduceOp::sum);
    CHECK(memory_stats().current_of(MemoryTag::comm) - before == 2 * 4 * 1024);
    REQUIRE(ring.complete(operations));
  }
  CHECK(memory_stats().current_of(MemoryTag::comm) == before);
}
