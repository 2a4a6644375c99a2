// Optimizers on a GPU that have steps with infinite gradients among others.
#pragma once

#include "tandem/autograd/variable.h"
#include "tandem/optim/grad_scaler.h"
#include "tests/optim/every_optimizer.h"
#include "tests/support/cuda_device.h"

#include <cmath>
#include <memory>
#include <set>
#include <vector>

namespace tandem::test {

inline constexpr double kScale = 8.0;
inline const std::set<std::uint32_t> kBadSteps{1, 4, 5, 9};  // the first one, two in a row, the last but one
inline constexpr std::uint32_t kSteps = 10;

/// Parameters on the GPU with an optimizer.
struct GpuRun {
  std::unique_ptr<optim::Optimizer> optimizer;

  GpuRun(const optim::OptimizerEntry& entry, DType dtype) {
    std::vector<Tensor> there;
    for (const Tensor& parameter : make_parameters(dtype))
      there.push_back(autograd::set_requires_grad(parameter.detach().to(kGpu)));
    optimizer = make(entry, there);
  }

  /// Those of set_gradient(), of which one is infinite in bad steps.
  void set_gradients(std::uint32_t step) const {
    for (const Tensor& parameter : optimizer->parameters()) {
      set_gradient(parameter, step);
      if (kBadSteps.contains(step) && parameter.rank() == 1)
        autograd::grad(parameter).narrow(0, 17, 1).fill(static_cast<double>(INFINITY));
    }
  }
};

/// A step as the host decides on it: it waits for the answer first.
inline bool step_by_host(optim::Optimizer& optimizer, double factor) {
  optimizer.scale_gradients(factor);
  const bool good = optim::FiniteCheck(optim::gradients_of(optimizer.parameters())).passed();
  if (good) {
    optimizer.step();
  } else {
    optimizer.skip_step();
  }
  return good;
}

}  // namespace tandem::test
