// Differentiable sums and means, over all elements or along dimensions.
// Example:
//     #include "tandem/autograd/functions.h"
//     const Tensor x = Tensor::from<float>({1, 2, 3, 6}, {2, 2});
//     const double total = sum(x).item();                               // 12
//     const double average = mean(x).item();                            // 3
//     const std::vector<float> rows = sum(x, 1).to_vector<float>();     // {3, 9}
//     const std::vector<float> means = mean(x, 0).to_vector<float>();   // {2, 4}
//     const Tensor centred = sub(x, mean(x, -1, true));                 // each row less its mean
//     const double positive = sum(gt(x, 1)).item();                     // 3: of a mask
//     const Tensor per_channel = sum(Tensor::zeros({8, 3, 32, 32}), {0, 2, 3});  // [3]
#pragma once

#include "tandem/core/tensor.h"

#include <concepts>
#include <vector>

namespace tandem::autograd {

// x of any shape and strides; the result is f32 for half x (OpKind::reduction). Added up in f64, in an order that
// depends on shape and strides only. Integers and masks have sums, too: i64, which wrap around, without a gradient;
// mean() throws Error for them, so take that of cast(x, DType::f32).

/// Sum of all elements, rank 0; 0 for none.
Tensor sum(const Tensor& x);

/// Mean of all elements, rank 0; NaN for none.
Tensor mean(const Tensor& x);

/// Sums along dimensions, as torch.sum: these disappear, or stay with size 1 if `keepdim`; 0 where they have no
/// elements. Negative ones count from the end. Throws Error where none is named, for one that is named twice and for
/// one that is not there.
Tensor sum(const Tensor& x, const std::vector<int>& dims, bool keepdim = false);

/// Means along dimensions, likewise; NaN where they have no elements. The sum is rounded once more where it is divided.
Tensor mean(const Tensor& x, const std::vector<int>& dims, bool keepdim = false);

/// Of one dimension. A template, so that a list without dimensions is not taken for dimension 0.
template <std::integral Dim>
Tensor sum(const Tensor& x, Dim dim, bool keepdim = false) {
  return sum(x, std::vector<int>{static_cast<int>(dim)}, keepdim);
}
/// The same of means.
template <std::integral Dim>
Tensor mean(const Tensor& x, Dim dim, bool keepdim = false) {
  return mean(x, std::vector<int>{static_cast<int>(dim)}, keepdim);
}

}  // namespace tandem::autograd
