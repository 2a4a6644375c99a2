// Tensor cores that four warps use together (wgmma), with operands that the memory system fetches by itself (TMA), on
// GPUs of compute capability 9.0: f16 and bf16, one group, strides of 1, channels in multiples of 8, tensors that begin
// at multiples of 16 bytes. Only for ConvImpl::warpgroup. A gradient that comes with a mask is copied first.
#pragma once

#include "tandem/kernels/conv/operands.h"

namespace tandem::kernels::cuda::warpgroup {

ConvObstacle obstacle;
ForwardPass forward;
BackwardInputPass backward_input;
BackwardInputBelowPass backward_input_below;
BackwardWeightPass backward_weight;

}  // namespace tandem::kernels::cuda::warpgroup
