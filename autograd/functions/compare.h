// Comparisons of each element, for the condition of where(). Their results have no gradient.
// Example:
//     #include "tandem/autograd/functions.h"
//     const Tensor x = Tensor::from<float>({-1, 0, 2}, {3});
//     const std::vector<int> positive = gt(x, 0).to_vector<int>();                        // {0, 0, 1}
//     const std::vector<float> chosen = where(gt(x, 0), x, x - 1).to_vector<float>();     // {-2, -1, 2}
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::autograd {

// u8: 1 where it holds, else 0. Of floating tensors of one dtype and device, whose shapes broadcast as in add(), or of
// a tensor and a number, which is rounded to the tensor's dtype. What is compared with NaN is 0, but for ne().

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

}  // namespace tandem::autograd
