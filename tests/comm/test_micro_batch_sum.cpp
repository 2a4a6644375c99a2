// Sums over micro-batches: the tree that is promised, and the same bits on any number of ranks.
#include "tandem/comm/ddp/hash.h"
#include "tandem/comm/ddp/micro_batch_sum.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

/// Numbers of very different sizes, whose sum depends on the order.
std::vector<float> numbers_of(int micro_batch, std::int64_t count) {
  std::mt19937 random(static_cast<unsigned>(micro_batch + 1));
  std::normal_distribution<float> normal;
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(std::exp(4.0f * normal(random)) * normal(random));
  return numbers;
}

/// ((0+1)+(2+3))+...
std::vector<float> tree_sum(int micro_batches, std::int64_t count) {
  std::vector<std::vector<float>> sums;
  for (int i = 0; i < micro_batches; ++i) sums.push_back(numbers_of(i, count));
  for (; sums.size() > 1; sums.resize(sums.size() / 2))
    for (std::size_t i = 0; i < sums.size() / 2; ++i)
      for (std::size_t j = 0; j < sums[i].size(); ++j) {
        const float sum = sums[2 * i][j] + sums[2 * i + 1][j];
        sums[i][j] = sum;
      }
  return sums.front();
}

/// What each rank gets of a sum of such numbers.
std::vector<std::vector<float>> sums_on_ranks(int ranks, int micro_batches, std::int64_t count) {
  std::mutex mutex;
  std::vector<std::vector<float>> sums;
  run_thread_ranks(ranks, [&](ProcessGroup& group) {
    MicroBatchSum sum(group, micro_batches, {Tensor::zeros({count})});
    for (int i = 0; i < sum.local_count(); ++i) sum.add({Tensor::from(numbers_of(sum.first() + i, count), {count})});
    const std::vector<float> mine = sum.finish().front().to_vector<float>();
    const std::lock_guard lock(mutex);
    sums.push_back(mine);
  });
  return sums;
}

}  // namespace

TEST_CASE("micro-batches are added up by one tree, on as many ranks as there are", "[threads]") {
  for (const std::int64_t count : {1, 2, 7, 1000}) {
    for (const int micro_batches : {1, 2, 8}) {
      const std::vector<float> expected = tree_sum(micro_batches, count);
      for (int ranks = 1; ranks <= micro_batches; ranks *= 2) {
        CAPTURE(count, micro_batches, ranks);
        const auto sums = sums_on_ranks(ranks, micro_batches, count);
        REQUIRE(sums.size() == static_cast<std::size_t>(ranks));
        for (const std::vector<float>& sum : sums) CHECK(sum == expected);
      }
    }
  }
}

TEST_CASE("the numbers that this is tested with have another sum in another order") {
  std::vector<float> in_turn(1000);
  for (int i = 0; i < 8; ++i) {
    const std::vector<float> numbers = numbers_of(i, 1000);
    for (std::size_t j = 0; j < numbers.size(); ++j) in_turn[j] += numbers[j];
  }
  CHECK(in_turn != tree_sum(8, 1000));
}

TEST_CASE("a canonical sum is of tensors of several dtypes and strides, of which some may be missing", "[threads]") {
  for (const int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    std::mutex mutex;
    std::vector<std::vector<Tensor>> all;
    run_thread_ranks(ranks, [&](ProcessGroup& group) {
      const Tensor half = Tensor::zeros({3}, {.dtype = DType::f16}), wide = Tensor::zeros({}, {.dtype = DType::f64});
      const Tensor image = Tensor::zeros({1, 2, 2, 2}, {.layout = Layout::channels_last}), none = Tensor::zeros({5});
      MicroBatchSum sum(group, 4, {half, wide, image, none});
      for (int turn = 0; turn < 2; ++turn) {  // the second one begins with nothing
        for (int i = 0; i < sum.local_count(); ++i) {
          const int number = sum.first() + i;
          const Tensor ones = Tensor::full({1, 2, 2, 2}, 1.0, {.layout = Layout::channels_last});
          sum.add({Tensor::full({3}, 2048.0 + number, {.dtype = DType::f16}),
                   Tensor::full({}, 0.1 * number, {.dtype = DType::f64}), number == 2 ? ones : Tensor(), Tensor()},
                  0.5);
        }
        const std::vector<Tensor> sums = sum.finish();
        const std::lock_guard lock(mutex);
        all.push_back(sums);
      }
    });
    for (const std::vector<Tensor>& sums : all) {
      // f16 has no odd numbers beyond 2048: 2049 and 2051 are rounded to even before they come here.
      CHECK(sums[0].dtype() == DType::f32);
      CHECK(sums[0].to_vector<float>() == std::vector<float>(3, 0.5f * (2048 + 2048 + 2050 + 2052)));
      CHECK(sums[1].item() == (0.0 + 0.05) + (0.1 + 0.5 * (0.1 * 3)));
      CHECK(sums[2].is_dense(Layout::channels_last));
      CHECK(sums[2].to_vector<float>() == std::vector<float>(8, 0.5f));
      CHECK_FALSE(sums[3].defined());
    }
  }
}

TEST_CASE("canonical sums refuse numbers that make no tree, and what they were not made for", "[threads]") {
  const auto error = [](int ranks, int micro_batches) {
    return error_of([&] {
      run_thread_ranks(ranks, [&](ProcessGroup& group) {
        MicroBatchSum(group, micro_batches, {});  // NOLINT(bugprone-unused-raii)
      });
    });
  };
  CHECK_THAT(error(1, 3), ContainsText("canonical sums are over 1, 2, 4, 8, ... micro-batches, not 3"));
  CHECK_THAT(error(1, 0), ContainsText("not 0"));
  CHECK_THAT(error(3, 4), ContainsText("over 4 micro-batches are shared by 1, 2, 4, ... up to 4 ranks, not by 3"));
  CHECK_THAT(error(4, 2), ContainsText("up to 2 ranks, not by 4"));
  run_thread_ranks(1, [](ProcessGroup& group) {
    CHECK_THAT(error_of([&] { MicroBatchSum(group, 1, {Tensor::zeros({1}, {.dtype = DType::i64})}); }),
               ContainsText("are of floating tensors, not of i64[1]"));
    MicroBatchSum sum(group, 1, {Tensor::zeros({2})});
    CHECK_THAT(error_of([&] { sum.finish(); }), ContainsText("has 1 micro-batches on this rank, and was given 0"));
    CHECK_THAT(error_of([&] { sum.add({Tensor::zeros({3})}); }), ContainsText("of f32[2] on cpu was given f32[3]"));
    CHECK_THAT(error_of([&] { sum.add({Tensor(), Tensor()}); }), ContainsText("of 1 tensors was given 2"));
    sum.add({Tensor::zeros({2})});
    CHECK_THAT(error_of([&] { sum.add({Tensor::zeros({2})}); }), ContainsText("was given one more"));
    sum.start();
    sum.add({Tensor::full({2}, 3.0)});
    CHECK(sum.finish().front().to_vector<float>() == std::vector<float>{3, 3});
  });
}
