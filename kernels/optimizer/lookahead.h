// A move of Lookahead's slow weights, and of the weights to them, over many tensors.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/optimizer/step_factors.h"
#include "tandem/kernels/optimizer/table_cache.h"

#include <span>

namespace tandem::kernels {

/// A weight and its slow weight (of optimizer_state_dtype), both dense and of equal strides. A half weight may have an
/// f32 master, which is then what counts.
struct LookaheadItem {
  Out slow, weight;
  Out master{};
};

/// In place (Zhang, Lucas, Hinton, Ba: "Lookahead Optimizer", NeurIPS 2019):
///   slow += (1 - decay) * (weight - slow),  weight = slow
/// A half weight becomes the rounded slow weight, its master the slow weight itself. f64, f32, f16, bf16; half types
/// are computed in f32. Where `skip`, an i32 of rank 0 on the items' device, is not 0, nothing changes; undefined, it
/// is 0. Where `control`, a StepFactors there (f64[kStepFactors]), is defined, its lr is the share 1 - decay in place
/// of `decay`. A `table` keeps what a GPU needs to know of the items from one call to the next. All items on one
/// device; on a GPU, one kernel for all of them, not in f64.
void lookahead_step(std::span<const LookaheadItem> items, double decay, const Tensor& skip = {},
                    const Tensor& control = {}, TableCache* table = nullptr);

}  // namespace tandem::kernels
