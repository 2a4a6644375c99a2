// Training whose gradients are too small for f16, unless their loss is scaled.
#pragma once

#include "tandem/autograd/precision.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/sgd.h"
#include "tests/train/mixed_net.h"

namespace tandem::test {

struct MixedTraining {
  autograd::Precision precision = autograd::Precision::fp16;
  optim::LossScaling scaling = optim::LossScaling::dynamic;
  bool master_weights = true;
  Device device{};
  int steps = 60;
};

/// The first and the last loss. The loss counts 2^-22 times (a small part of some sum), and the rate makes up for it:
/// in f32 this is plain SGD at a rate of 0.25.
inline std::pair<double, double> train_mixed(const MixedTraining& options) {
  constexpr double kShare = 0x1p-22;
  const auto network = make_mixed_net(options.precision, options.device);
  optim::SGD sgd(network->parameters(), {.lr = 0.25 / kShare, .master_weights = options.master_weights});
  optim::GradScaler scaler({.mode = options.scaling});
  std::pair<double, double> losses;
  for (int step = 0; step < options.steps; ++step) {
    const Points points = make_points(64, static_cast<std::uint32_t>(step % 4), options.device);
    sgd.zero_grad();
    const double loss = backward_points(*network, points, kShare * scaler.scale());
    if (step == 0) losses.first = loss;
    losses.second = loss;
    scaler.step(sgd);
    scaler.update();
  }
  return losses;
}

}  // namespace tandem::test
