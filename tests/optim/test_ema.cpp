// The moving average against its formula.
#include "tandem/optim/ema.h"

#include "tandem/core/memory.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <limits>

using namespace tandem;
using namespace tandem::test;
using optim::ExponentialMovingAverage;

TEST_CASE("the average follows its formula, with the decay of its warm-up") {
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::f16, DType::bf16);
  CAPTURE(name_of(dtype));
  const double decay = GENERATE(0.3, 0.999);
  const Tensor w = Tensor::zeros({3, 2, 2, 2}, {.dtype = dtype, .layout = Layout::channels_last});
  const Tensor b = Tensor::full({5}, 4.0, {.dtype = dtype});
  ExponentialMovingAverage ema({{"w", w}, {"b", b}}, decay);
  double average = 0.0, other = 4.0;
  for (int t = 0; t < 40; ++t) {
    const double value = 1.0 + 0.25 * (t % 5);  // which half types hold
    w.fill(value);
    b.fill(-2.0 * value);
    ema.update();
    const double d = std::min(decay, (1.0 + t) / (10.0 + t));
    average = d * average + (1.0 - d) * value;
    other = d * other - (1.0 - d) * 2.0 * value;
  }
  CHECK(ema.updates() == 40);
  const NamedTensors& averages = ema.averages();
  REQUIRE(averages.size() == 2);
  CHECK(averages[0].first == "w");
  CHECK(averages[0].second.strides() == w.strides());
  CHECK(averages[0].second.dtype() == (dtype == DType::f64 ? DType::f64 : DType::f32));
  // 40 roundings of f32, of numbers up to 4.
  const double bound = dtype == DType::f64 ? 1e-14 : 40 * 4 * 6e-8;
  for (const double value : averages[0].second.to_vector<double>()) CHECK(std::abs(value - average) < bound);
  for (const double value : averages[1].second.to_vector<double>()) CHECK(std::abs(value - other) < bound);
}

TEST_CASE(
    "an average that moves every few steps keeps the decay of these together, from the start where it is told to") {
  const bool warms_up = GENERATE(false, true);
  const Tensor w = Tensor::full({2}, 3.0, {.dtype = DType::f64});
  ExponentialMovingAverage ema({{"w", w}}, 0.9, {.every = 3, .warms_up = warms_up});
  double average = 3.0;
  for (int t = 1; t <= 30; ++t) {
    w.fill(0.5 * t);
    ema.update();
    if (t % 3 == 0) {
      const double moves = t / 3 - 1, decay = 0.9 * 0.9 * 0.9;
      const double d = warms_up ? std::min(decay, (1.0 + moves) / (10.0 + moves)) : decay;
      average = d * average + (1.0 - d) * 0.5 * t;
    }
    CHECK(std::abs(ema.averages()[0].second.to_vector<double>()[1] - average) < 1e-13);
  }
  CHECK(ema.updates() == 30);
  CHECK_THAT(error_of([&] { ExponentialMovingAverage({{"w", w}}, 0.9, {.every = 0}); }),
             ContainsText("ema: every must be 1 step or more, got 0"));
}

TEST_CASE("what stays as it is has itself for its average, and integers are copied") {
  const Tensor w = Tensor::from<float>({0.1f, -3.7e-12f, 1e30f}, {3});
  const Tensor count = Tensor::from<std::int64_t>({1}, {});
  const Tensor none = Tensor::zeros({0});
  ExponentialMovingAverage ema({{"w", w}, {"count", count}, {"none", none}}, 0.9);
  for (int t = 0; t < 20; ++t) ema.update();
  CHECK(ema.averages()[0].second.to_vector<float>() == w.to_vector<float>());
  count.fill(7.0);
  CHECK(ema.averages()[1].second.item() == 1.0);
  ema.update();
  CHECK(ema.averages()[1].second.item() == 7.0);
  CHECK(ema.averages()[1].second.dtype() == DType::i64);
}

TEST_CASE("a mask keeps its infinities, and goes on as it is") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const Tensor w = Tensor::full({3}, 1.0, {.dtype = dtype}), mask = Tensor::full({3}, 0.0, {.dtype = dtype});
  mask.narrow(0, 1, 1).fill(static_cast<double>(-kInf));
  ExponentialMovingAverage ema({{"w", w}, {"mask", mask}}, 0.9);
  ema.update();
  CHECK(ema.averages()[0].second.to_vector<float>() == std::vector<float>(3, 1.0F));
  CHECK(ema.averages()[1].second.to_vector<float>() == std::vector<float>{0.0F, -kInf, 0.0F});
  mask.fill(3.0);
  ema.update();
  CHECK(ema.averages()[1].second.to_vector<float>() == std::vector<float>(3, 3.0F));
}

TEST_CASE("an average goes on from its state") {
  const Tensor w = Tensor::full({4}, 1.0), v = Tensor::full({4}, 9.0);
  ExponentialMovingAverage whole({{"w", w}}, 0.95), second({{"w", v}}, 0.95);
  for (int t = 0; t < 6; ++t) {
    w.fill(t * 0.7);
    whole.update();
  }
  second.load({{"w", whole.averages()[0].second.clone()}}, whole.updates());
  for (int t = 0; t < 6; ++t) {
    w.fill(t * 0.3);
    v.fill(t * 0.3);
    whole.update();
    second.update();
  }
  CHECK(second.averages()[0].second.to_vector<float>() == whole.averages()[0].second.to_vector<float>());
  const auto refused = [&](const NamedTensors& averages, std::int64_t updates) {
    return error_of([&] { second.load(averages, updates); });
  };
  CHECK_THAT(refused({{"v", w}}, 1), ContainsText("there is no average of w"));
  CHECK_THAT(refused({}, 1), ContainsText("0 averages are given, there are 1 tensors"));
  CHECK_THAT(refused({{"w", Tensor::zeros({3})}}, 1), ContainsText("the average of w must be f32[4], got f32[3]"));
  CHECK_THAT(refused({{"w", w}}, -1), ContainsText("the number of updates must be 0 or more, got -1"));
  CHECK(second.updates() == 12);
}

TEST_CASE("averages count as memory of the optimizer") {
  const Tensor w = Tensor::zeros({1000});
  const std::int64_t before = memory_stats().current_of(MemoryTag::optimizer);
  const ExponentialMovingAverage ema({{"w", w}}, 0.9);
  CHECK(memory_stats().current_of(MemoryTag::optimizer) - before >= 4000);
}

TEST_CASE("an average needs a decay between 0 and 1, and dense tensors") {
  const Tensor w = Tensor::zeros({4, 4});
  for (const double decay : {0.0, 1.0, -0.1, 1.5, std::nan("")}) {
    CHECK_THAT(error_of([&] { ExponentialMovingAverage({{"w", w}}, decay); }), ContainsText("between 0 and 1"));
  }
  CHECK_THAT(error_of([&] { ExponentialMovingAverage({{"w", w.narrow(1, 0, 2)}}, 0.9); }),
             ContainsText("ema: w must be a dense tensor"));
}
