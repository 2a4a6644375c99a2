// Convolution with one thread per element of the result: every geometry and floating dtype but f64. A gradient may come
// with its mask.
#pragma once

#include "tandem/kernels/conv/operands.h"

namespace tandem::kernels::cuda::naive {

ConvObstacle obstacle;  // none
ForwardPass forward;
BackwardInputPass backward_input;
BackwardWeightPass backward_weight;

}  // namespace tandem::kernels::cuda::naive
