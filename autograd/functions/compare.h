// Comparisons and logical combinations of each element, for the condition of where(). Their results have no gradient.
// Example:
//     #include "tandem/autograd/functions.h"
//     const Tensor x = Tensor::from<float>({-1, 0, 2}, {3});
//     const std::vector<int> positive = gt(x, 0).to_vector<int>();                        // {0, 0, 1}
//     const std::vector<int> small = logical_and(gt(x, -2), lt(x, 1)).to_vector<int>();   // {1, 1, 0}
//     const std::vector<float> chosen = where(gt(x, 0), x, x - 1).to_vector<float>();     // {-2, -1, 2}
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::autograd {

// u8: 1 where it holds, else 0. Of tensors of one dtype, whichever it is (on CUDA not f64), and of one device, whose
// shapes broadcast as in add(); or of a tensor and a number, which is rounded to a floating dtype, and must be one of
// an integer dtype's (from 2^53 on, where a double is not every whole number, give a tensor). What is compared with NaN
// is 0, but for ne().

/// a == b
Tensor eq(const Tensor& a, const Tensor& b);
Tensor eq(const Tensor& x, double number);

/// a != b
Tensor ne(const Tensor& a, const Tensor& b);
Tensor ne(const Tensor& x, double number);

/// a < b
Tensor lt(const Tensor& a, const Tensor& b);
Tensor lt(const Tensor& x, double number);

/// a <= b
Tensor le(const Tensor& a, const Tensor& b);
Tensor le(const Tensor& x, double number);

/// a > b
Tensor gt(const Tensor& a, const Tensor& b);
Tensor gt(const Tensor& x, double number);

/// a >= b
Tensor ge(const Tensor& a, const Tensor& b);
Tensor ge(const Tensor& x, double number);

// Of masks, and of other tensors likewise, whose elements count as true where they are not 0 (NaN is not).

/// 1 where both are true
Tensor logical_and(const Tensor& a, const Tensor& b);

/// 1 where one of them is true, or both
Tensor logical_or(const Tensor& a, const Tensor& b);

/// 1 where one of them is true, but not both
Tensor logical_xor(const Tensor& a, const Tensor& b);

/// 1 where x is not true
Tensor logical_not(const Tensor& x);

}  // namespace tandem::autograd
