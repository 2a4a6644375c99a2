// Differentiable matrix products.
// Example:
//     #include "tandem/autograd/functions/shape.h"
//     const Tensor queries = Tensor::full({8, 4, 16, 32}, 0.5), keys = Tensor::full({8, 4, 16, 32}, 0.25);
//     const Tensor scores = matmul(queries, transpose(keys, -2, -1));          // [8, 4, 16, 16]
//     const Tensor rows = matmul(queries, Tensor::zeros({32, 10}));            // [8, 4, 16, 10]: one matrix for all
//     const double dot = matmul(Tensor::full({3}, 2.0), Tensor::full({3}, 5.0)).item();  // 30
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::autograd {

/// The matrix product a b, by the rules of torch.matmul:
///
///   a [..., M, K], b [..., K, N] -> [..., M, N]   leading dimensions broadcast
///   a [K]         -> counts as [1, K], and the dimension of 1 is taken out of the result
///   b [K]         -> counts as [K, 1], likewise; two vectors give their dot product, of rank 0
///
/// One floating dtype and device, any strides: transposed operands are multiplied as they lie in memory. Sums are in
/// float for f32, f16 and bf16 and rounded once, gradients that are sums over broadcast dimensions, too. A sum of no
/// terms (K = 0) is 0. Keeps each operand whose partner needs a gradient. f64 on the CPU only. Throws Error where that
/// does not hold.
Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace tandem::autograd
