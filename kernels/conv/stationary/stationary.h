// Tensor cores whose weights stay in shared memory, while blocks fetch the halo of one tile of pixels after the other:
// f16 and bf16, one group, strides of 1, channels in multiples of 8 and at most 128, weights and two halos that fit
// into shared memory, tensors that begin at multiples of 16 bytes; for the gradient of weights, whose sums stay in
// registers, at most 64 channels and 9 taps. A gradient that comes with a mask is copied first.
#pragma once

#include "tandem/kernels/conv/operands.h"

namespace tandem::kernels::cuda::stationary {

ConvObstacle obstacle;
/// True where this is taken before implicit_gemm: every halo is read once, for several taps, and tiles are many and
/// mostly full. Never for the gradient of w, which took 1.2 to 1.6 times as long on an H100 (docs/kernels/conv.md).
bool pays(PassKind pass, const ConvGeometry& g);
ForwardPass forward;
ForwardPoolPass forward_pool;
ForwardMomentsPass forward_moments;
MomentParts moment_parts;
ForwardPoolMomentsPass forward_pool_moments;
MomentParts pool_moment_parts;
BackwardInputPass backward_input;
BackwardInputBelowPass backward_input_below;
BackwardWeightPass backward_weight;

}  // namespace tandem::kernels::cuda::stationary
