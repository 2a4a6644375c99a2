// Tiles of a matrix product in shared memory, whose threads keep 4 x 4 sums in registers: one group, tensors with
// elements, sizes that 32-bit indices reach. A gradient may come with its mask.
#pragma once

#include "tandem/kernels/conv/operands.h"

namespace tandem::kernels::cuda::tile {

ConvObstacle obstacle;
ForwardPass forward;
BackwardInputPass backward_input;
BackwardWeightPass backward_weight;

}  // namespace tandem::kernels::cuda::tile
