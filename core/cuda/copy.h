// The kernel behind copies within one device.
#pragma once

#include "tandem/core/out.h"

namespace tandem::cuda {

/// Copies between two tensors on one CUDA device: same shape, dtypes of one size, any strides, not empty. Enqueued on
/// the current stream.
void strided_copy(const Out& to, const Tensor& from);

}  // namespace tandem::cuda
