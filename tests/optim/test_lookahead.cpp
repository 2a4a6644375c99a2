// Lookahead against plain loops over numbers.
#include "tandem/optim/lookahead.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/memory.h"
#include "tandem/optim/sgd.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::test;
using optim::Lookahead, optim::LookaheadOptions, optim::SGD;

namespace {

constexpr std::int64_t kSteps = 28;  // with moves every 5: three behind the last one
constexpr double kLr = 0.125, kMomentum = 0.75;

Tensor parameter_of(const Tensor& values) { return autograd::set_requires_grad(values); }

/// What the t-th step finds, t from 1: a gradient, and a running statistic of that step. Halves hold both.
double gradient_at(std::int64_t t, int element) { return 0.25 * static_cast<double>((7 * t + 3 * element) % 9) - 0.75; }
double statistic_at(std::int64_t t) { return 0.125 * static_cast<double>(t * t % 11); }

double rounded_to(DType dtype, double value) {
  const Tensor number = Tensor::full({1}, value, {.dtype = DType::f64});
  return autograd::cast(autograd::cast(number, dtype), DType::f64).item();
}

/// The same by plain loops, in f64 but for what a parameter without a master is rounded to.
struct Plain {
  LookaheadOptions options;
  DType stored;  // f64 unless each step rounds
  std::vector<double> w, momentum, slow;
  double statistic = 0.5, slow_statistic = 0.5;

  void step(std::int64_t t, std::int64_t steps) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      momentum[i] = kMomentum * momentum[i] + gradient_at(t, static_cast<int>(i));
      w[i] = rounded_to(stored, w[i] - kLr * momentum[i]);
    }
    statistic = statistic_at(t);
    if (t % options.every != 0) return;
    const double share = static_cast<double>(t) / static_cast<double>(steps);
    double d = 1.0;
    for (std::int64_t k = 0; k < options.every; ++k) d *= options.decay;
    for (double k = 0; k < options.power; ++k) d *= share;  // whole powers
    for (std::size_t i = 0; i < w.size(); ++i) {
      slow[i] = d * slow[i] + (1.0 - d) * w[i];
      w[i] = rounded_to(stored, slow[i]);
    }
    statistic = slow_statistic = d * slow_statistic + (1.0 - d) * statistic;
  }
};

std::vector<double> numbers_of(const Tensor& tensor) {
  return autograd::cast(tensor.detach(), DType::f64).to_vector<double>();
}

void check_close(const Tensor& actual, const std::vector<double>& expected, double bound) {
  const std::vector<double> values = numbers_of(actual);
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i, values[i], expected[i]);
    CHECK(std::abs(values[i] - expected[i]) <= bound);
  }
}

Tensor slow_of(const Lookahead& lookahead, std::string_view name) {
  for (const auto& [own, tensor] : lookahead.slow_weights())
    if (own == name) return tensor;
  return {};
}

}  // namespace

TEST_CASE("slow weights, weights, masters and momentum follow their formulas") {
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::f16, DType::bf16);
  const bool has_master = GENERATE(true, false);
  const LookaheadOptions options =
      GENERATE(LookaheadOptions{}, LookaheadOptions{.every = 4, .decay = 0.9, .power = 1.0},
               LookaheadOptions{.every = 1, .decay = 0.5, .power = 0.0});
  CAPTURE(name_of(dtype), has_master, options.every);
  const std::vector<double> start{1.0, -0.5, 0.25, 2.0, 0.0, -1.5};
  const bool is_rounded = is_half(dtype) && !has_master;
  const Tensor w = parameter_of(autograd::cast(Tensor::from(start, {3, 2, 1, 1}, Layout::channels_last), dtype));
  const Tensor statistic = Tensor::full({2}, 0.5), count = Tensor::from<std::int64_t>({0}, {});
  SGD sgd({w}, {.lr = kLr, .momentum = kMomentum, .master_weights = has_master});
  Lookahead lookahead({{"w", w}, {"running_mean", statistic}, {"count", count}}, sgd, options);
  Plain plain{options, is_rounded ? dtype : DType::f64, start, std::vector<double>(6, 0.0), start};

  // Numbers stay below 8: each step and each move rounds a few times by half a unit of the last place, which a later
  // step does not enlarge. Where the plain loops round to halves, too, a number near the middle of two may go to the
  // other one, now and then.
  const double half_unit = !is_half(dtype) ? 0.0 : dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
  const double bound =
      kSteps * 4 * 8.0 * (dtype == DType::f64 ? 0x1p-53 : 0x1p-24) + (is_rounded ? 4 * 8.0 * half_unit : 0.0);
  for (std::int64_t t = 1; t <= kSteps; ++t) {
    std::vector<double> gradient;
    for (int i = 0; i < 6; ++i) gradient.push_back(gradient_at(t, i));
    autograd::set_grad(w, autograd::cast(Tensor::from(gradient, {3, 2, 1, 1}, Layout::channels_last), dtype));
    sgd.step();
    statistic.fill(statistic_at(t));
    count.fill(static_cast<double>(t));
    lookahead.after_step(t, kSteps);
    plain.step(t, kSteps);
    CAPTURE(t);
    check_close(w, plain.w, bound + 8.0 * half_unit);
    check_close(slow_of(lookahead, "w"), plain.slow, bound);
    check_close(statistic, {plain.statistic, plain.statistic}, kSteps * 4 * 0x1p-24);
    if (is_half(dtype) && has_master) {
      check_close(sgd.master(0), plain.w, bound);
      // The parameter is its master's rounded copy, to the bit.
      CHECK(numbers_of(w) == numbers_of(autograd::cast(sgd.master(0), dtype)));
    }
    if (t % options.every == 0 && !is_half(dtype)) CHECK(numbers_of(w) == numbers_of(slow_of(lookahead, "w")));
  }
  CHECK(count.item() == kSteps);
  CHECK(lookahead.steps_taken() == kSteps);
  CHECK(slow_of(lookahead, "w").dtype() == (dtype == DType::f64 ? DType::f64 : DType::f32));
  CHECK(slow_of(lookahead, "w").strides() == w.strides());
  CHECK_FALSE(slow_of(lookahead, "count").defined());
  for (const auto& [name, tensor] : sgd.state_dict())
    if (name == "0.momentum_buffer")
      check_close(tensor, plain.momentum, kSteps * 8.0 * (dtype == DType::f64 ? 0x1p-53 : 0x1p-24));

  // The last steps, which no move followed, are lost.
  const std::vector<double> before = numbers_of(w), slow = numbers_of(slow_of(lookahead, "w"));
  lookahead.finish();
  CHECK((numbers_of(w) != before) == (kSteps % options.every != 0));
  CHECK(numbers_of(slow_of(lookahead, "w")) == slow);
  if (sgd.master(0).defined()) CHECK(numbers_of(sgd.master(0)) == slow);
  CHECK(numbers_of(w) == numbers_of(autograd::cast(slow_of(lookahead, "w"), dtype)));
  CHECK(numbers_of(statistic) == numbers_of(slow_of(lookahead, "running_mean")));
  CHECK(count.item() == kSteps);
}

TEST_CASE("the decay rises with a power of the share of the run, or is constant") {
  const LookaheadOptions rising;  // airbench94's: 0.95^5 (t / T)^3, T of 476 steps
  CHECK(rising.decay_at(476, 476) == Approx(0.7737809375).epsilon(1e-14));
  CHECK(rising.decay_at(475, 476) == Approx(0.7737809375 * std::pow(475.0 / 476.0, 3.0)).epsilon(1e-14));
  CHECK(rising.decay_at(238, 476) == Approx(0.7737809375 / 8.0).epsilon(1e-14));
  CHECK(rising.decay_at(500, 476) == rising.decay_at(476, 476));         // behind the end
  const LookaheadOptions constant = LookaheadOptions::constant(6, 0.2);  // slow += 0.2 (weights - slow)
  CHECK(constant.every == 6);
  for (const std::int64_t step : {1, 50, 100}) CHECK(constant.decay_at(step, 100) == Approx(0.8).epsilon(1e-14));
}

TEST_CASE("plain Lookahead with alpha 1/2 ends half way, and what is lost is worked out by hand") {
  const Tensor w = parameter_of(Tensor::full({2}, 1.0));
  SGD sgd({w}, {.lr = 0.5});
  Lookahead lookahead({{"w", w}}, sgd, LookaheadOptions::constant(2, 0.5));
  std::vector<double> seen;
  for (std::int64_t step = 1; step <= 5; ++step) {
    autograd::set_grad(w, Tensor::full({2}, 2.0));
    sgd.step();
    lookahead.after_step(step, 5);
    seen.push_back(numbers_of(w)[0]);
  }
  CHECK(seen == std::vector<double>{0.0, 0.0, -1.0, -1.0, -2.0});
  lookahead.finish();
  CHECK(numbers_of(w) == std::vector<double>{-1.0, -1.0});
}

TEST_CASE("a run that ends before the first move keeps its weights") {
  const Tensor w = parameter_of(Tensor::full({2}, 1.0));
  SGD sgd({w}, {.lr = 0.5});
  Lookahead lookahead({{"w", w}}, sgd, LookaheadOptions::constant(4, 0.5));
  for (std::int64_t step = 1; step <= 4; ++step) {
    autograd::set_grad(w, Tensor::full({2}, 2.0));
    sgd.step();
    lookahead.after_step(step, 4);
    lookahead.finish();
    const double expected = step < 4 ? 1.0 - static_cast<double>(step) : -1.0;  // the move is half way from 1 to -3
    CHECK(numbers_of(w) == std::vector<double>(2, expected));
  }
}

TEST_CASE("a tensor with two names moves once, and a mask keeps its infinities") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Tensor w = parameter_of(Tensor::full({3}, 4.0));
  const Tensor mask = Tensor::from<float>({0.0f, -kInf, -0.0f}, {3}), none = Tensor::zeros({0});
  SGD sgd({w}, {.lr = 1.0});
  Lookahead lookahead({{"first", w}, {"second", w.detach()}, {"mask", mask}, {"none", none}}, sgd,
                      LookaheadOptions::constant(1, 0.25));
  REQUIRE(lookahead.slow_weights().size() == 2);
  CHECK(lookahead.slow_weights()[0].first == "first");
  w.detach().fill(0.0);
  lookahead.after_step(1, 1);
  CHECK(numbers_of(w) == std::vector<double>(3, 3.0));
  lookahead.finish();
  CHECK(numbers_of(w) == std::vector<double>(3, 3.0));
  CHECK(mask.to_vector<float>() == std::vector<float>{0.0f, -kInf, 0.0f});
  CHECK(std::signbit(mask.to_vector<float>()[2]));
}

TEST_CASE("weights that no step changes keep their bits, whatever the decay") {
  const Tensor w = parameter_of(Tensor::from<float>({0.1f, -3.7e-12f, 1e30f}, {3}));
  const std::vector<float> before = w.to_vector<float>();
  SGD sgd({w}, {.lr = 1.0});
  Lookahead lookahead({{"w", w}}, sgd, {.every = 1});
  for (std::int64_t step = 1; step <= 20; ++step) lookahead.after_step(step, 20);
  CHECK(w.to_vector<float>() == before);
}

TEST_CASE("slow weights go on from their state in the middle of a period") {
  const LookaheadOptions options{.every = 5, .decay = 0.9, .power = 2.0};
  const auto train = [](const Tensor& w, SGD& sgd, Lookahead& lookahead, std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t <= last; ++t) {
      autograd::set_grad(w, Tensor::full({4}, 0.1 * static_cast<double>(t % 7) - 0.2));
      sgd.step();
      lookahead.after_step(t, kSteps);
    }
  };
  const Tensor w = parameter_of(Tensor::full({4}, 0.3)), v = parameter_of(Tensor::full({4}, 9.0));
  SGD whole({w}, {.lr = 0.1}), second({v}, {.lr = 0.1});
  Lookahead slow({{"w", w}}, whole, options), other({{"w", v}}, second, options);
  train(w, whole, slow, 1, 13);
  v.detach().copy_from(w.detach());
  other.load({{"w", slow.slow_weights()[0].second.clone()}}, slow.steps_taken());
  CHECK(v.to_vector<float>() == w.to_vector<float>());  // which load() leaves alone
  train(w, whole, slow, 14, kSteps);
  train(v, second, other, 14, kSteps);
  CHECK(v.to_vector<float>() == w.to_vector<float>());
  CHECK(other.slow_weights()[0].second.to_vector<float>() == slow.slow_weights()[0].second.to_vector<float>());

  const auto refused = [&](const NamedTensors& weights, std::int64_t steps) {
    return error_of([&] { other.load(weights, steps); });
  };
  CHECK_THAT(refused({{"v", w}}, 1), ContainsText("there is no slow weight of w"));
  CHECK_THAT(refused({}, 1), ContainsText("0 slow weights are given, there are 1"));
  CHECK_THAT(refused({{"w", Tensor::zeros({3})}}, 1), ContainsText("the slow weight of w must be f32[4], got f32[3]"));
  CHECK_THAT(refused({{"w", w}}, -1), ContainsText("the number of steps must be 0 or more, got -1"));
  CHECK(other.steps_taken() == kSteps);
}

TEST_CASE("slow weights count as memory of the optimizer") {
  const Tensor w = parameter_of(Tensor::zeros({1000}, {.dtype = DType::f16}));
  SGD sgd({w}, {.lr = 1.0});
  const std::int64_t before = memory_stats().current_of(MemoryTag::optimizer);
  const Lookahead lookahead({{"w", w}}, sgd, {});
  CHECK(memory_stats().current_of(MemoryTag::optimizer) - before >= 4000);
}

TEST_CASE("Lookahead needs options within their limits, and dense tensors") {
  const Tensor w = parameter_of(Tensor::zeros({4, 4}));
  SGD sgd({w}, {.lr = 1.0});
  const auto refused = [&](const LookaheadOptions& options) {
    return error_of([&] { Lookahead({{"w", w}}, sgd, options); });
  };
  for (const double decay : {0.0, 1.0, -0.1, 1.5, std::nan("")})
    CHECK_THAT(refused({.decay = decay}), ContainsText("lookahead: the decay must be between 0 and 1"));
  CHECK_THAT(refused({.every = 0}), ContainsText("lookahead: every 0 must be 1 step or more"));
  for (const double power : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    CHECK_THAT(refused({.power = power}), ContainsText("must be a finite number, 0 (a constant decay) or more"));
  for (const double alpha : {0.0, 1.0, std::nan("")})
    CHECK_THAT(error_of([&] { LookaheadOptions::constant(5, alpha); }), ContainsText("alpha must be between 0 and 1"));
  CHECK_THAT(error_of([&] { Lookahead({{"w", w.detach().narrow(1, 0, 2)}}, sgd, {}); }),
             ContainsText("lookahead: w must be a dense tensor"));
  CHECK_THAT(error_of([&] { LookaheadOptions().decay_at(0, 5); }), ContainsText("step 0 of 5"));
}
