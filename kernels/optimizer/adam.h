// One step of Adam or AdamW over many tensors.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/optimizer/step_factors.h"
#include "tandem/kernels/optimizer/table_cache.h"

#include <span>

namespace tandem::kernels {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool decoupled_weight_decay = false;  // AdamW
  double gradient_factor = 1.0;         // see below
  Tensor skip{};  // i32, rank 0, on the device of the items: where it is not 0, nothing changes; undefined: it is 0
  /// As of SgdOptions: in place of lr, weight_decay, gradient_factor, and of the choice that
  /// decoupled_weight_decay is, as that is told by StepFactors::keep.
  Tensor control{};
  Tensor loss_scale{};          // as of SgdOptions
  TableCache* table = nullptr;  // as of SgdOptions
};

/// What the options say of a step, `control` apart: there, AdamW's weight decay is in StepFactors::keep.
StepFactors factors_of(const AdamOptions& options);

/// Steps of one parameter as its device counts them, so that a recorded step goes on counting where it is repeated, and
/// what follows from the number for the step that counted last.
struct AdamCount {
  std::int64_t steps = 0;      // that were taken
  float inverse_bias2 = 0.0f;  // 1 / sqrt(1 - beta2^steps)
  float step_size = 0.0f;      // lr / (1 - beta1^steps)
};

/// A parameter, its gradient and its moments (of optimizer_state_dtype), all dense and of equal strides. With AMSGrad,
/// max_exp_avg_sq is defined, too. `step` counts from 1. Half parameters may have an f32 gradient, and an f32 master.
struct AdamItem {
  Out parameter;
  Tensor gradient;
  Out exp_avg, exp_avg_sq, max_exp_avg_sq;
  std::int64_t step = 1;
  Out master{};
  /// An AdamCount, u8[16] on the item's device: the step that is taken is the next one after it, it counts it, and
  /// `step` says nothing. A step that is skipped is not counted. Undefined: it is the step-th.
  Out count{};
};

/// In place, as torch.optim.Adam (Kingma, Ba, 2015) and AdamW (Loshchilov, Hutter, 2019):
///   g = gradient_factor * gradient
///   g += weight_decay * parameter                      (AdamW: parameter *= 1 - lr * weight_decay)
///   exp_avg += (g - exp_avg) * (1 - beta1),  exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * g^2
///   parameter -= lr / (1 - beta1^step) * exp_avg / (sqrt(v) / sqrt(1 - beta2^step) + eps)
/// with v = exp_avg_sq, or its running maximum (AMSGrad: Reddi, Kale, Kumar, 2018).
/// f64, f32, f16, bf16; half types are computed in f32. Where there is a master, it is what is updated, and the
/// parameter becomes its rounded copy in the same pass. All items on one device; on a GPU, one kernel for all of them,
/// not in f64; with counts, one more that counts.
/// Of counts, powers of betas are multiplied up in f64 (integer_power()), which is within step * 2^-52 of them.
void adam_step(std::span<const AdamItem> items, const AdamOptions& options);

}  // namespace tandem::kernels
