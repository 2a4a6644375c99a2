// What changes from one step of an optimizer to the next, as its kernels take it: by value, or from the device's
// memory.
#pragma once

#include <cstdint>

namespace tandem::kernels {

/// The factors of a step, which schedules, clipping and loss scales change. In memory they are f64, in this order. What
/// an optimizer does not have, its kernel does not read.
struct StepFactors {
  double lr = 0.0;               ///< learning rate; of Lookahead, the share of the way to the weights
  double momentum = 0.0;         ///< of optimizers with a momentum buffer
  double weight_decay = 0.0;     ///< times the parameter, added to the gradient
  double gradient_factor = 1.0;  ///< what gradients are multiplied by
  double keep = 1.0;  ///< what AdamW multiplies a parameter by at first: 1 - lr * weight decay; of Muon, 0 in steps
                      ///< that leave the norm of a matrix as it is

  friend bool operator==(const StepFactors&, const StepFactors&) = default;
};

/// How many numbers these are.
constexpr std::int64_t kStepFactors = sizeof(StepFactors) / sizeof(double);

}  // namespace tandem::kernels
