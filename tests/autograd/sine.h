// An element-wise function whose functors are in a .cu file.
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::test {

/// sin(factor x), on the CPU and on GPUs.
Tensor sine(const Tensor& x, float factor);

}  // namespace tandem::test
