// What losses make of the numbers that they have for each element.
// Example:
//     const Tensor losses = Tensor::from<float>({1, 2, 6}, {3});
//     const double average = reduce(losses, Reduction::mean).item();  // 3
#pragma once

#include "tandem/core/tensor.h"

#include <cstdint>

namespace tandem::autograd {

/// PyTorch's names. `mean` is over all elements, and NaN where there is none; `none` keeps the shape.
enum class Reduction : std::uint8_t { mean, sum, none };

/// mean(), sum() (autograd/functions/reduce.h) or `losses` as it is.
Tensor reduce(const Tensor& losses, Reduction reduction);

}  // namespace tandem::autograd
