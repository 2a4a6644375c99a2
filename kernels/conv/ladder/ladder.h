// Steps between the plainest convolution and the one that runs, to read and to measure one gain at a time:
//
//   1  naive::forward           one thread per output, everything from global memory
//   2  ladder::shared_tile      blocks share what their threads load
//   3  tile::forward            each thread keeps 4 x 4 sums in registers
//   4  ladder::tensor_cores     warps multiply 16 x 8 x 16 at once
//   5  implicit_gemm::forward   copies of later steps are under way meanwhile
//
// docs/kernels/conv.md says what each step buys. Only 1, 3 and 5 are ever chosen for an op.
#pragma once

#include "kernels/conv/implementations.h"

namespace tandem::kernels::cuda::ladder {

/// What tile::forward takes.
void shared_tile(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Tensor& y);

/// What implicit_gemm::forward takes.
void tensor_cores(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Tensor& y);

}  // namespace tandem::kernels::cuda::ladder
