// Matrix products of different sizes that belong together: c = p a b + q d + r I, for each of a group.
#pragma once

#include "tandem/core/out.h"

#include <span>

namespace tandem::kernels {

/// One of a group, and of it a batch: c[n, M, N] of a[n, M, K] and b[n, K, N], of any strides. c is dense and
/// row-major, and so is what is added to it, which is like c; nothing where it is undefined. c shares no memory with
/// what is read for it or for another product of the group.
struct GroupedProduct {
  Tensor a, b;
  Out c;
  Tensor addend{};
};

/// What becomes of the products, alike for all of a group.
struct Combination {
  double product = 1.0;   ///< times a b
  double addend = 0.0;    ///< times what is added, where there is something
  double identity = 0.0;  ///< added to the elements whose row and column have one number
};

/// c = product * a b + addend * d + identity * I for each of the group. All of one floating dtype and device (f64 on
/// the CPU only). Products are summed as batched_gemm does; what becomes of them is computed in f32, on the CPU from
/// the rounded product, on a GPU from the sum itself (from the rounded one where cuBLAS multiplies). On a GPU one
/// launch for all products of up to 16 batches, but for those that are large enough for cuBLAS, where it is. Throws
/// Error where that does not hold. Example:
///     const Tensor x = Tensor::full({1, 2, 3}, 1.0), gram = Tensor::empty({1, 2, 2});
///     const std::vector<GroupedProduct> products{{x, x.transpose(1, 2), Out(gram)}};
///     grouped_gemm(products, {.product = 2.0, .identity = 1.0});
///     const std::vector<double> values = gram.to_vector<double>();  // {7, 6, 6, 7}
void grouped_gemm(std::span<const GroupedProduct> products, const Combination& combination = {});

}  // namespace tandem::kernels
