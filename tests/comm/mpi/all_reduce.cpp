// all_reduce on several ranks: exact whole numbers, random numbers against f64, equal bits, bytes sent, asynchrony.
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/ddp/hash.h"
#include "tandem/comm/schedules/algorithms.h"
#include "tests/comm/mpi/mpi_test.h"

#include <cmath>
#include <random>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

std::vector<std::int64_t> nasty_sizes(int ranks) {
  return {0, 1, 2, 3, 7, ranks - 1, ranks, ranks + 1, 1000, 1025, 65536 + 3};
}

double expected_at(int ranks, std::int64_t index, ReduceOp op) {
  double result = whole_number(0, index);
  for (int rank = 1; rank < ranks; ++rank) {
    const double value = whole_number(rank, index);
    if (op == ReduceOp::min) {
      result = std::min(result, value);
    } else if (op == ReduceOp::max) {
      result = std::max(result, value);
    } else {
      result += value;
    }
  }
  return result;
}

/// Elements that are not the reduction of whole numbers over all ranks. `average` rounds once: half a unit in the last
/// place of the dtype, and for half types f32's rounding before it.
std::int64_t wrong_elements(const Tensor& tensor, int ranks, ReduceOp op) {
  const double unit = tensor.dtype() == DType::f64    ? 0x1p-53
                      : tensor.dtype() == DType::f32  ? 0x1p-24
                      : tensor.dtype() == DType::f16  ? 0x1p-11 + 0x1p-23
                      : tensor.dtype() == DType::bf16 ? 0x1p-8 + 0x1p-23
                                                      : 0.0;
  std::int64_t wrong = 0, index = 0;
  for (const double value : tensor.to_vector<double>()) {
    double expected = expected_at(ranks, index++, op), bound = 0.0;
    if (op == ReduceOp::average) {
      expected /= ranks;
      bound = unit * std::abs(expected);
    }
    wrong += !(std::abs(value - expected) <= bound);
  }
  return wrong;
}

bool same_bits_everywhere(ProcessGroup& group, const Tensor& tensor) {
  const auto hash = static_cast<std::int64_t>(hash_tensor(tensor));
  const auto hashes = group.all_gather(Tensor::from(std::vector{hash}, {1})).to_vector<std::int64_t>();
  return std::all_of(hashes.begin(), hashes.end(), [&](std::int64_t other) { return other == hash; });
}

}  // namespace

TEST_CASE("all_reduce of whole numbers is exact for all sizes, operations and dtypes") {
  const auto group = each_group();
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::average, ReduceOp::min, ReduceOp::max}) {
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::i32}) {
      if (op == ReduceOp::average && !is_floating(dtype)) continue;
      for (const std::int64_t size : nasty_sizes(group->size())) {
        INFO(name_of(op) << " " << name_of(dtype) << " of " << size);
        const Tensor blocking = whole_numbers(group->rank(), {size}, dtype);
        group->all_reduce(Out(blocking), op);
        CHECK(wrong_elements(blocking, group->size(), op) == 0);
        const Tensor later = whole_numbers(group->rank(), {size}, dtype);
        group->all_reduce_async(Out(later), op)->wait();
        CHECK(wrong_elements(later, group->size(), op) == 0);
      }
    }
  }
}

TEST_CASE("all_reduce of random numbers has equal bits on all ranks and is near the f64 sum") {
  const auto group = each_group();
  auto sizes = nasty_sizes(group->size());
  sizes.push_back((1 << 18) + 5);  // several segments of the ring in every chunk
  for (const std::int64_t size : sizes) {
    std::vector<double> sum(static_cast<std::size_t>(size), 0.0), magnitude(static_cast<std::size_t>(size), 0.0);
    Tensor mine;
    for (int rank = 0; rank < group->size(); ++rank) {
      std::mt19937 random(static_cast<unsigned>(rank * 1000003 + size));
      std::normal_distribution<float> normal;
      std::vector<float> values(static_cast<std::size_t>(size));
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = normal(random) * std::exp2(static_cast<float>(random() % 20));
        sum[i] += static_cast<double>(values[i]);
        magnitude[i] += std::abs(static_cast<double>(values[i]));
      }
      if (rank == group->rank()) mine = Tensor::from(values, {size});
    }
    group->all_reduce(Out(mine));
    // n-1 additions, each off by at most 2^-24 of a partial sum, which is at most the sum of magnitudes (1 + n 2^-24).
    const double relative_bound = group->size() * 0x1p-24;
    const auto result = mine.to_vector<double>();
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < result.size(); ++i)
      wrong += !(std::abs(result[i] - sum[i]) <= relative_bound * magnitude[i]);
    CHECK(wrong == 0);
    CHECK(same_bits_everywhere(*group, mine));
  }
}

TEST_CASE("the ring sends 2(n-1)/n of the bytes") {
  const auto group = make_message_group("ring");
  for (const std::int64_t size : nasty_sizes(group->size())) {
    const std::int64_t before = group->all_reduce_bytes_sent();
    group->all_reduce(Out(whole_numbers(group->rank(), {size}, DType::f32)));
    const std::int64_t sent = group->all_reduce_bytes_sent() - before;
    CHECK(sent == elements_sent(ring_all_reduce(group->size()), group->rank(), size) * 4);
    if (size % group->size() == 0) CHECK(sent == 2 * (group->size() - 1) * size / group->size() * 4);
  }
}

TEST_CASE("asynchronous operations complete by polling alone") {
  const auto group = each_group();
  const Tensor tensor = whole_numbers(group->rank(), {100003}, DType::f32);
  const auto work = group->all_reduce_async(Out(tensor), ReduceOp::sum);
  std::int64_t polls = 1;
  while (!work->poll()) ++polls;
  CHECK(polls >= 1);
  CHECK(work->poll());
  work->wait();
  CHECK(wrong_elements(tensor, group->size(), ReduceOp::sum) == 0);
}

TEST_CASE("several operations may be under way and ranks may wait for them in different orders") {
  const auto group = each_group();
  std::vector<Tensor> tensors;
  std::vector<std::unique_ptr<Work>> works;
  for (const std::int64_t size : {70001, 3, 0, 300007, 1024}) {
    tensors.push_back(whole_numbers(group->rank(), {size}, size == 3 ? DType::f16 : DType::f64));
    works.push_back(group->all_reduce_async(Out(tensors.back()), ReduceOp::max));
  }
  if (group->rank() % 2 == 1) std::reverse(works.begin(), works.end());
  for (const auto& work : works) work->wait();
  for (const Tensor& tensor : tensors) CHECK(wrong_elements(tensor, group->size(), ReduceOp::max) == 0);
}

TEST_CASE("two groups do not get in each other's way") {
  const auto native = make_process_group("native", environment()), mpi = make_process_group("mpi", environment());
  const auto second = make_process_group("native", environment());
  const Tensor a = whole_numbers(native->rank(), {5000}, DType::f32),
               b = whole_numbers(native->rank(), {5000}, DType::f32);
  const Tensor c = whole_numbers(native->rank(), {5000}, DType::f32);
  auto first_work = native->all_reduce_async(Out(a)), second_work = second->all_reduce_async(Out(b), ReduceOp::min);
  mpi->all_reduce(Out(c), ReduceOp::max);
  second_work->wait();
  first_work->wait();
  CHECK(wrong_elements(a, native->size(), ReduceOp::sum) == 0);
  CHECK(wrong_elements(b, native->size(), ReduceOp::min) == 0);
  CHECK(wrong_elements(c, native->size(), ReduceOp::max) == 0);
}

TEST_CASE("channels-last tensors and views of a storage are reduced in place") {
  const auto group = each_group();
  const Tensor whole = Tensor::full({4, 2, 3, 3}, 1.0, {DType::f32, Layout::channels_last});
  group->all_reduce(Out(whole.narrow(0, 1, 2)));
  for (std::int64_t n = 0; n < 4; ++n) {
    const double expected = n == 1 || n == 2 ? group->size() : 1;
    CHECK(whole.select(0, n).to_vector<double>() == std::vector<double>(18, expected));
  }
}

TEST_CASE("backend native adds up by the algorithm that is asked for") {
  for (const std::string& algorithm : algorithm_names()) {
    INFO(algorithm);
    const auto group = make_process_group({.algorithm = algorithm}, environment());
    CHECK(group->name() == (group->size() == 1 ? "self" : "native"));
    const Tensor x = whole_numbers(group->rank(), {1001}, DType::f32);
    group->all_reduce(Out(x));
    CHECK(wrong_elements(x, group->size(), ReduceOp::sum) == 0);
    const bool goes_by_messages = algorithm != "auto" && algorithm != "shared-memory";
    if (group->size() > 1) CHECK((group->all_reduce_bytes_sent() > 0) == goes_by_messages);
  }
}
