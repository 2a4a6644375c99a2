// Training in half precision on a CUDA device, real or simulated.
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/train/mixed_training.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("a network whose gradients vanish in f16 trains on a GPU with a loss scale and masters", "[cuda]") {
  if (!has_gpu()) return;
  const int steps = 24;
  const auto here = train_mixed({.steps = steps}), there = train_mixed({.device = kGpu, .steps = steps});
  CHECK(there.second < 0.8 * there.first);
  CHECK(std::abs(there.second - here.second) < 0.02);
  const auto pure = train_mixed({.scaling = optim::LossScaling::none, .device = kGpu, .steps = steps});
  CHECK(pure.second > 0.9 * pure.first);
}
