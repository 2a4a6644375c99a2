// Tells autograd that tensors have new contents.
#pragma once

#include "core/tensor.h"

namespace tandem::kernels {

/// Tensor::mark_written of each tensor that is defined. Every dispatcher calls it for all that it is about to write, so
/// that a backward pass that saved the old contents fails rather than using the new ones.
template <typename... Tensors>
void mark_written(const Tensors&... tensors) {
  const auto mark = [](const Tensor& tensor) {
    if (tensor.defined()) tensor.mark_written("kernel's output");
  };
  (mark(tensors), ...);
}

}  // namespace tandem::kernels
