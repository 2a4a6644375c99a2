// Learning-rate schedules, among them values that PyTorch 1.13 gives for the same settings.
#include "tandem/core/error.h"
#include "tandem/optim/schedule.h"
#include "tests/support/catch.h"

#include <cmath>

using namespace tandem;
using namespace tandem::optim;

namespace {

bool close(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(1.0, std::abs(b)); }

}  // namespace

TEST_CASE("constant, step and multi-step schedules") {
  CHECK(ConstantSchedule().lr_factor(1e6) == 1.0);
  const StepSchedule step(3.0, 0.5);
  const double expected[] = {1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25};
  for (int t = 0; t < 7; ++t) CHECK(step.lr_factor(t) == expected[t]);
  CHECK(step.lr_factor(2.99) == 1.0);
  const MultiStepSchedule multi({2.0, 5.0}, 0.1);
  const double drops[] = {1.0, 1.0, 0.1, 0.1, 0.1, 0.01};
  for (int t = 0; t < 6; ++t) CHECK(close(multi.lr_factor(t), drops[t]));
}

TEST_CASE("cosine schedule") {
  const CosineSchedule cosine(10.0, 0.1);
  CHECK(cosine.lr_factor(0.0) == 1.0);
  CHECK(close(cosine.lr_factor(5.0), 0.55));
  CHECK(close(cosine.lr_factor(3.0), 0.8145033635316129));  // CosineAnnealingLR(T_max=10, eta_min=0.1)
  CHECK(close(cosine.lr_factor(2.5), 0.1 + 0.9 * 0.5 * (1.0 + std::sqrt(0.5))));
  CHECK(close(cosine.lr_factor(10.0), 0.1));
  CHECK(close(cosine.lr_factor(12.0), 0.1));
}

TEST_CASE("linear schedule") {
  const LinearSchedule linear(10.0, 0.25);
  CHECK(linear.lr_factor(0.0) == 1.0);
  CHECK(close(linear.lr_factor(4.0), 0.7));  // LinearLR(start_factor=1, end_factor=0.25, total_iters=10)
  CHECK(close(linear.lr_factor(2.5), 0.8125));
  CHECK(close(linear.lr_factor(10.0), 0.25));
  CHECK(linear.lr_factor(1e9) == linear.lr_factor(10.0));
  // Of a run of 200 steps: 1 - t / 200, which the last step does not bring to 0.
  const LinearSchedule to_nothing(200.0);
  for (int t = 0; t < 200; ++t) CHECK(close(to_nothing.lr_factor(t), 1.0 - t / 200.0));
  CHECK(to_nothing.lr_factor(199.0) > 0.0);
  CHECK(to_nothing.lr_factor(200.0) == 0.0);
}

TEST_CASE("warm-up and linear decay make the schedule of airbench94") {
  constexpr int kSteps = 476, kWarmup = 109;  // ceil(9.9 * 48), int(0.23 * 476)
  const WarmupSchedule schedule(kWarmup, 0.2, std::make_unique<LinearSchedule>(kSteps - kWarmup, 0.07));
  for (int t = 0; t < kSteps; ++t) {
    const double up = static_cast<double>(t) / kWarmup, down = static_cast<double>(t - kWarmup) / (kSteps - kWarmup);
    const double expected = t < kWarmup ? 0.2 + 0.8 * up : 1.0 - 0.93 * down;
    CHECK(std::abs(schedule.lr_factor(t) - expected) <= 1e-12);
  }
}

TEST_CASE("warm-up goes over into the next schedule at its time 0") {
  const WarmupSchedule warmup(4.0, 0.2, std::make_unique<StepSchedule>(2.0, 0.1));
  CHECK(close(warmup.lr_factor(0.0), 0.2));
  CHECK(close(warmup.lr_factor(1.0), 0.4));
  CHECK(close(warmup.lr_factor(3.5), 0.9));
  CHECK(warmup.lr_factor(4.0) == 1.0);
  CHECK(close(warmup.lr_factor(6.0), 0.1));
  CHECK(WarmupSchedule(0.0, 0.0, std::make_unique<ConstantSchedule>()).lr_factor(0.0) == 1.0);
}

// torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1, total_steps=10, cycle_momentum=False), PyTorch 1.13: lr of
// each step; then with div_factor=10, final_div_factor=100, anneal_strategy='linear'.
TEST_CASE("one-cycle schedule gives PyTorch's values") {
  const double cosine[] = {0.040000000000000036,
                           0.52,
                           1.0,
                           0.9504846320134737,
                           0.8117456539497631,
                           0.6112620219362893,
                           0.38874197806371075,
                           0.18825834605023697,
                           0.049519367986526286,
                           4e-06};
  const double linear[] = {0.1,
                           0.55,
                           1.0,
                           0.8572857142857143,
                           0.7145714285714286,
                           0.5718571428571428,
                           0.42914285714285716,
                           0.28642857142857137,
                           0.1437142857142858,
                           0.0010000000000000009};
  const OneCycleSchedule one(10.0), other(10.0, {.div_factor = 10.0, .final_div_factor = 100.0, .linear = true});
  for (int t = 0; t < 10; ++t) {
    CHECK(close(one.lr_factor(t), cosine[t]));
    CHECK(close(other.lr_factor(t), linear[t]));
  }
  CHECK(close(one.lr_factor(20.0), 4e-6));
}

TEST_CASE("schedules refuse settings that make no sense") {
  CHECK_THROWS_AS(StepSchedule(0.0), Error);
  CHECK_THROWS_AS(StepSchedule(1.0, -1.0), Error);
  CHECK_THROWS_AS(MultiStepSchedule({3.0, 2.0}), Error);
  CHECK_THROWS_AS(CosineSchedule(-1.0), Error);
  CHECK_THROWS_AS(LinearSchedule(0.0), Error);
  CHECK_THROWS_AS(LinearSchedule(1.0, -0.1), Error);
  CHECK_THROWS_AS(WarmupSchedule(1.0, 0.1, nullptr), Error);
  CHECK_THROWS_AS(OneCycleSchedule(0.0), Error);
  CHECK_THROWS_AS(OneCycleSchedule(10.0, {.pct_start = 1.5}), Error);
}
