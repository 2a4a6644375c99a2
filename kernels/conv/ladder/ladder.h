// Steps between the plainest convolution and the ones that run, to read and to measure one gain at a time:
//
//   1  naive                 one thread per element of the result, everything from global memory
//   2  ladder::shared_tile   blocks share what their threads load
//   3  tile                  each thread keeps 4 x 4 sums in registers
//   4  ladder::tensor_cores  warps multiply 16 x 8 x 16 at once
//   5  implicit_gemm         copies of later steps are under way meanwhile
//   6  stationary            the part of the image that a tile meets is fetched once for all taps, weights once for all
//                            tiles of a block; in the gradient of weights, their sums stay in registers
//
// docs/kernels/conv.md says what each step buys. Ops never choose 2 and 4.
#pragma once

#include "tandem/kernels/conv/operands.h"

namespace tandem::kernels::cuda::ladder {

/// What tile takes.
namespace shared_tile {
ForwardPass forward;
BackwardInputPass backward_input;
BackwardWeightPass backward_weight;
}  // namespace shared_tile

/// What implicit_gemm takes, of f16 and bf16.
namespace tensor_cores {
ForwardPass forward;
BackwardInputPass backward_input;
BackwardWeightPass backward_weight;
}  // namespace tensor_cores

}  // namespace tandem::kernels::cuda::ladder
