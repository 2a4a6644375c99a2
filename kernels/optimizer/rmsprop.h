// One step of RMSprop over many tensors.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/optimizer/step_factors.h"
#include "tandem/kernels/optimizer/table_cache.h"

#include <span>

namespace tandem::kernels {

struct RmspropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0.0;
  double momentum = 0.0;
  double gradient_factor = 1.0;  // see below
  Tensor skip{};  // i32, rank 0, on the device of the items: where it is not 0, nothing changes; undefined: it is 0
  /// As of SgdOptions.
  Tensor control{};
  Tensor loss_scale{};          // as of SgdOptions
  TableCache* table = nullptr;  // as of SgdOptions
};

/// A parameter, its gradient and its state (of optimizer_state_dtype), all dense and of equal strides. The momentum
/// buffer is undefined with momentum 0, the mean gradient unless centered. State starts as zeros. Half parameters may
/// have an f32 gradient, and an f32 master.
struct RmspropItem {
  Out parameter;
  Tensor gradient;
  Out square_avg, momentum_buffer, grad_avg;
  Out master{};
};

/// In place, as torch.optim.RMSprop (Hinton's lecture 6e, 2012; centered: Graves, 2013):
///   g = gradient_factor * gradient + weight_decay * parameter,  square_avg = alpha * square_avg + (1 - alpha) * g^2
///   centered: grad_avg += (g - grad_avg) * (1 - alpha),  v = square_avg - grad_avg^2;  else v = square_avg
///   update = g / (sqrt(v) + eps),  momentum: update = buffer = momentum * buffer + update
///   parameter -= lr * update
/// f64, f32, f16, bf16; half types are computed in f32. Where there is a master, it is what is updated, and the
/// parameter becomes its rounded copy in the same pass. All items on one device; on a GPU, one kernel for all of them,
/// not in f64.
void rmsprop_step(std::span<const RmspropItem> items, const RmspropOptions& options);

}  // namespace tandem::kernels
