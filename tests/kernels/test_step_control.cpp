// Optimizer kernels that take a step's factors, and Adam's counts of steps, from the device's memory: the same bits as
// by value.
#include "tandem/kernels/optimizer/adam.h"
#include "tandem/kernels/optimizer/lookahead.h"
#include "tandem/kernels/optimizer/rmsprop.h"
#include "tandem/kernels/optimizer/sgd.h"
#include "tests/support/catch.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <cstring>

using namespace tandem;
using namespace tandem::test;

namespace {

/// f64[kStepFactors] on a device.
Tensor control_of(const kernels::StepFactors& f, Device device) {
  return Tensor::from(std::vector<double>{f.lr, f.momentum, f.weight_decay, f.gradient_factor, f.keep},
                      {kernels::kStepFactors})
      .to(device);
}

/// A parameter, its gradient and three states, of more than one chunk.
struct Operands {
  Tensor parameter, gradient, first, second, third;

  explicit Operands(Device device) {
    const auto make = [&](float scale, float shift) {
      std::vector<float> values;
      for (int i = 0; i < 5000; ++i) values.push_back(shift + scale * static_cast<float>((i * 37 % 101) - 50) / 50.0f);
      return Tensor::from(values, {5000}).to(device);
    };
    parameter = make(1.0f, 0.0f);
    gradient = make(-0.7f, 0.1f);
    first = make(0.3f, 0.0f);
    second = make(0.5f, 1.0f);
    third = make(0.2f, 0.0f);
  }

  std::vector<std::vector<float>> values() const {
    return {parameter.to_vector<float>(), first.to_vector<float>(), second.to_vector<float>(),
            third.to_vector<float>()};
  }
  kernels::SgdItem sgd() const { return {Out(parameter), gradient, Out(first)}; }
  kernels::RmspropItem rmsprop() const { return {Out(parameter), gradient, Out(second), Out(third), Out(first)}; }
  kernels::LookaheadItem lookahead() const { return {Out(first), Out(parameter)}; }
  kernels::AdamItem adam(std::int64_t step, const Tensor& count = {}) const {
    return {Out(parameter), gradient, Out(first), Out(second), Out(third), step, {}, Out(count)};
  }
};

/// What `work` leaves in new operands.
template <typename Work>
std::vector<std::vector<float>> values_after(Device device, Work&& work) {
  const Operands operands(device);
  work(operands);
  return operands.values();
}

/// A count of so many steps.
Tensor count_of(std::int64_t steps, Device device) {
  const kernels::AdamCount count{.steps = steps};
  std::vector<std::uint8_t> bytes(sizeof(count));
  std::memcpy(bytes.data(), &count, sizeof(count));
  return Tensor::from(bytes, {sizeof(count)}).to(device);
}

std::int64_t steps_of(const Tensor& count) {
  const std::vector<std::uint8_t> bytes = count.to_vector<std::uint8_t>();
  std::int64_t steps = 0;
  std::memcpy(&steps, bytes.data(), sizeof(steps));
  return steps;
}

// None of them is a power of two.
constexpr double kLr = 0.013, kMomentum = 0.87, kDecay = 0.021, kFactor = 0.37;

}  // namespace

TEST_CASE("factors in the device's memory count in place of the options'", "[cuda][optimizer]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  CAPTURE(name_of(device));
  const Tensor control =
      control_of({.lr = kLr, .momentum = kMomentum, .weight_decay = kDecay, .gradient_factor = kFactor}, device);
  for (const bool nesterov : {false, true}) {
    const auto by_value = values_after(device, [&](const Operands& o) {
      kernels::sgd_step(
          std::vector{o.sgd()},
          {.lr = kLr, .momentum = kMomentum, .weight_decay = kDecay, .nesterov = nesterov, .gradient_factor = kFactor});
    });
    const auto by_control = values_after(device, [&](const Operands& o) {
      kernels::sgd_step(std::vector{o.sgd()}, {.lr = 7.0, .momentum = 0.5, .nesterov = nesterov, .control = control});
    });
    CHECK(by_control == by_value);
    CHECK(by_control != Operands(device).values());
  }
  const auto rmsprop_by_value = values_after(device, [&](const Operands& o) {
    kernels::rmsprop_step(
        std::vector{o.rmsprop()},
        {.lr = kLr, .alpha = 0.5, .weight_decay = kDecay, .momentum = kMomentum, .gradient_factor = kFactor});
  });
  CHECK(values_after(device, [&](const Operands& o) {
          kernels::rmsprop_step(std::vector{o.rmsprop()},
                                {.lr = 7.0, .alpha = 0.5, .momentum = 0.5, .control = control});
        }) == rmsprop_by_value);
  const auto lookahead_by_value =
      values_after(device, [&](const Operands& o) { kernels::lookahead_step(std::vector{o.lookahead()}, 0.3); });
  CHECK(values_after(device, [&](const Operands& o) {
          kernels::lookahead_step(std::vector{o.lookahead()}, 0.9, {}, control_of({.lr = 1.0 - 0.3}, device));
        }) == lookahead_by_value);
}

// Beyond 30 steps betas' powers are rounded differently than pow() rounds them; what f32 sees is the same.
TEST_CASE("steps of Adam that the device counts are those of a number by value", "[cuda][optimizer]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  CAPTURE(name_of(device));
  const auto skip_of = [&](bool skips) {
    return Tensor::full({}, skips ? 1.0 : 0.0, {.dtype = DType::i32, .device = device});
  };
  for (const bool decoupled : {false, true}) {
    for (const std::int64_t before : {0, 1, 41, 12345}) {
      CAPTURE(decoupled, before);
      const Operands by_value(device), by_count(device);
      const Tensor count = count_of(before, device), other = count_of(before + 3, device);
      std::int64_t taken = 0;
      for (int step = 0; step < 12; ++step) {
        const bool skips = step % 4 == 1;
        const double lr = kLr * (step + 1);
        kernels::AdamOptions options{.weight_decay = kDecay, .decoupled_weight_decay = decoupled};
        options.skip = skip_of(skips);
        options.control = control_of({.lr = lr,
                                      .weight_decay = decoupled ? 0.0 : kDecay,
                                      .gradient_factor = kFactor,
                                      .keep = decoupled ? 1.0 - lr * kDecay : 1.0},
                                     device);
        kernels::adam_step(std::vector{by_count.adam(1, count)}, options);
        if (skips) continue;
        options.skip = options.control = {};
        options.lr = lr;
        options.gradient_factor = kFactor;
        kernels::adam_step(std::vector{by_value.adam(before + ++taken)}, options);
        REQUIRE(by_count.values() == by_value.values());
        CHECK(steps_of(count) == before + taken);
      }
      CHECK(taken == 9);
      CHECK(steps_of(other) == before + 3);
    }
  }
}

TEST_CASE("parameters of one call count their steps each for itself, an empty one too", "[cuda][optimizer]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  CAPTURE(name_of(device));
  const Operands a(device), b(device), expected(device);
  const Tensor none = Tensor::empty({0}, {.device = device});
  const std::vector<Tensor> counts{count_of(4, device), count_of(0, device), count_of(9, device)};
  const std::vector<kernels::AdamItem> items{
      a.adam(1, counts[0]), b.adam(1, counts[1]), {Out(none), none, Out(none), Out(none), {}, 1, {}, Out(counts[2])}};
  const kernels::AdamOptions options{.control = control_of({.lr = kLr}, device)};
  kernels::adam_step(items, options);
  kernels::adam_step(std::vector{expected.adam(1)}, {.lr = kLr});
  CHECK(b.values() == expected.values());
  CHECK(a.values() != b.values());
  CHECK(steps_of(counts[0]) == 5);
  CHECK(steps_of(counts[1]) == 1);
  CHECK(steps_of(counts[2]) == 10);
  kernels::adam_step(std::vector{items[2]}, options);  // nothing but an empty one
  CHECK(steps_of(counts[2]) == 11);
}

TEST_CASE("factors and counts of the wrong kind are refused", "[cuda][optimizer]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  CAPTURE(name_of(device));
  const Operands o(device);
  const auto before = o.values();
  const std::string wanted = "the factors of a step must be a dense f64[5] on " + name_of(device) + ", got ";
  const Tensor gaps = Tensor::zeros({10}, {.dtype = DType::f64, .device = device}).narrow(0, 0, 5, 2);
  for (const Tensor& bad :
       {Tensor::zeros({5}, {.device = device}), Tensor::zeros({4}, {.dtype = DType::f64, .device = device}),
        Tensor::zeros({5, 1}, {.dtype = DType::f64, .device = device}), gaps}) {
    CHECK_THAT(error_of([&] { kernels::sgd_step(std::vector{o.sgd()}, {.control = bad}); }),
               ContainsText("sgd_step: " + wanted));
    CHECK_THAT(error_of([&] { kernels::rmsprop_step(std::vector{o.rmsprop()}, {.control = bad}); }),
               ContainsText("rmsprop_step: " + wanted));
    CHECK_THAT(error_of([&] { kernels::lookahead_step(std::vector{o.lookahead()}, 0.5, {}, bad); }),
               ContainsText("lookahead_step: " + wanted));
    CHECK_THAT(error_of([&] { kernels::adam_step(std::vector{o.adam(1)}, {.control = bad}); }),
               ContainsText("adam_step: " + wanted));
  }
  const Tensor bytes = Tensor::zeros({40}, {.dtype = DType::u8, .device = device});
  for (const Tensor& bad : {bytes.narrow(0, 0, 15), bytes.narrow(0, 0, 16, 2), bytes.narrow(0, 1, 16),
                            Tensor::zeros({16}, {.dtype = DType::i64, .device = device})}) {
    CHECK_THAT(error_of([&] { kernels::adam_step(std::vector{o.adam(1, bad)}, {}); }),
               ContainsText("adam_step: the count of steps of parameter f32[5000]"));
  }
  if (device == kGpu) {
    CHECK_THAT(error_of([&] { kernels::sgd_step(std::vector{o.sgd()}, {.control = control_of({}, Device{})}); }),
               ContainsText(wanted + "f64[5]"));
    CHECK_THAT(error_of([&] { kernels::adam_step(std::vector{o.adam(1, count_of(0, Device{}))}, {}); }),
               ContainsText("move one of them"));
    CHECK_THAT(error_of([&] { kernels::adam_step(std::vector{o.adam(1)}, {.control = control_of({}, device)}); }),
               ContainsText("factors on the device need the items' counts there, and parameter f32[5000]"));
  }
  CHECK(o.values() == before);
}
