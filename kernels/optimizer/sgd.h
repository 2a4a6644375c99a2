// One step of stochastic gradient descent over many tensors.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/optimizer/step_factors.h"
#include "tandem/kernels/optimizer/table_cache.h"

#include <span>

namespace tandem::kernels {

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  double gradient_factor = 1.0;  // see below
  Tensor skip{};  // i32, rank 0, on the device of the items: where it is not 0, nothing changes; undefined: it is 0
  /// f64[kStepFactors] on the device of the items, a StepFactors: in place of lr, momentum, weight_decay and
  /// gradient_factor where it is defined, so that work that was recorded once can be repeated with others. Whether
  /// there are momentum buffers is still up to `momentum`.
  Tensor control{};
  /// A LossScaleState on the device of the items (kernels/optimizer/loss_scale.h), times whose inverse gradient_factor
  /// counts; undefined: 1.
  Tensor loss_scale{};
  TableCache* table = nullptr;  // keeps the table on a GPU from one call to the next; null: it is made at each call
};

/// A parameter, its gradient, and its momentum buffer (of optimizer_state_dtype; undefined with momentum 0), all dense
/// and of equal strides. Half parameters may have an f32 gradient, and an f32 master.
struct SgdItem {
  Out parameter;
  Tensor gradient;
  Out momentum_buffer;
  bool is_first_step = false;  // the buffer holds nothing yet: it starts as the gradient itself
  Out master{};
};

/// In place, as torch.optim.SGD:
///   g = gradient_factor * gradient + weight_decay * parameter
///   buffer = momentum * buffer + (1 - dampening) * g   (at the first step: buffer = g)
///   parameter -= lr * (nesterov ? g + momentum * buffer : buffer)
/// f64, f32, f16, bf16; half types are computed in f32. Where there is a master, it is what is updated, and the
/// parameter becomes its rounded copy in the same pass. All items on one device; on a GPU, one kernel for all of them,
/// not in f64.
void sgd_step(std::span<const SgdItem> items, const SgdOptions& options);

}  // namespace tandem::kernels
