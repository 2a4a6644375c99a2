// Tensor cores for the first layers of networks, forward and gradient of the weights: f16 and bf16, one group, at most
// 256 taps x channels, outputs in multiples of 8, tensors that begin at multiples of 16 bytes. A gradient may come with
// its mask.
#pragma once

#include "tandem/kernels/conv/operands.h"

namespace tandem::kernels::cuda::few_channels {

ConvObstacle obstacle;
ForwardPass forward;
BackwardWeightPass backward_weight;
BackwardWeightAndBiasPass backward_weight_and_bias;

}  // namespace tandem::kernels::cuda::few_channels
