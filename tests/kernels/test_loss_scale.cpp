// Loss scales in a device's memory.
#include "tandem/kernels/optimizer/loss_scale.h"

#include "tests/support/catch.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <set>
#include <vector>

using namespace tandem;
using namespace tandem::test;
using kernels::LossScaleRule;
using kernels::LossScaleState;

namespace {

const std::set<int> kBad{1, 5, 6, 14, 15, 16, 17, 30};

Tensor word(Device device, bool is_bad) {
  return Tensor::full({}, is_bad ? 1.0 : 0.0, {.dtype = DType::i32}).to(device);
}

void check_state(const Tensor& state, double scale, std::int64_t good_steps, std::int64_t skipped_steps) {
  const LossScaleState now = kernels::read_loss_scale(state);
  CHECK(now.scale == scale);
  CHECK(now.inverse == 1.0 / scale);
  CHECK(now.good_steps == good_steps);
  CHECK(now.skipped_steps == skipped_steps);
}

}  // namespace

TEST_CASE("a loss scale on a device grows and falls by its rule", "[cuda][optimizer]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  const LossScaleRule rule{
      .growth_factor = 1.7, .backoff_factor = 0.3, .growth_interval = 3, .least = 0.8, .most = 11.0};
  const Tensor state = kernels::make_loss_scale(device, {.scale = 4.0, .inverse = 0.25});
  double scale = 4.0;
  std::int64_t good = 0, skipped = 0;
  for (int step = 1; step <= 40; ++step) {
    CAPTURE(name_of(device), step);
    const bool is_bad = kBad.contains(step);
    const std::vector<Tensor> words{word(device, false), word(device, is_bad && step % 2 == 0), word(device, is_bad)};
    kernels::update_loss_scale(words, rule, Out(state));
    if (is_bad) {
      scale = std::max(scale * 0.3, 0.8);
      good = 0;
      ++skipped;
    } else if (++good == 3) {
      scale = std::min(scale * 1.7, 11.0);
      good = 0;
    }
    check_state(state, scale, good, skipped);
  }
  CHECK(skipped == 8);
}

TEST_CASE("a fixed loss scale counts what is skipped, and stays", "[cuda][optimizer]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  const Tensor state = kernels::make_loss_scale(device, {.scale = 8.0, .inverse = 0.125});
  for (const bool is_bad : {true, false, true})
    kernels::update_loss_scale(std::vector{word(device, is_bad)}, {.is_fixed = true, .growth_interval = 1}, Out(state));
  check_state(state, 8.0, 0, 2);
}

TEST_CASE("a gradient to start with is the scale times a share, rounded once", "[cuda][optimizer]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  const Tensor state = kernels::make_loss_scale(device, {.scale = 1234.5, .inverse = 1.0 / 1234.5});
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const Shape& shape : {Shape{}, Shape{1, 1}, Shape{0}, Shape{777}}) {
      const Tensor to = Tensor::zeros(shape, {.dtype = dtype, .device = device});
      kernels::fill_loss_scale(state, 1.0 / 3.0, Out(to));
      CHECK(to.to_vector<float>() == Tensor::full(shape, 1234.5 / 3.0, {.dtype = dtype}).to_vector<float>());
    }
  }
}

TEST_CASE("loss scales refuse other tensors") {
  const Tensor state = kernels::make_loss_scale({}, {}), number = Tensor::zeros({});
  const auto update = [&](const std::vector<Tensor>& found, const Tensor& to) {
    return error_of([&] { kernels::update_loss_scale(found, {}, Out(to)); });
  };
  CHECK(update({}, state) == "no error");
  CHECK_THAT(update({number}, state), ContainsText("must be one i32 of rank 0 on cpu, got f32[]"));
  CHECK_THAT(update({}, number),
             ContainsText("a loss scale must be that of make_loss_scale() on cpu, u8[40], got f32"));
  CHECK_THAT(update(std::vector<Tensor>(9, word({}, false)), state), ContainsText("takes 8 words"));
  CHECK_THAT(error_of([&] { kernels::fill_loss_scale(state, 1.0, Out(word({}, false))); }),
             ContainsText("needs a state and a dense floating tensor"));
}
