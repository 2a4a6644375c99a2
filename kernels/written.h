// Tells autograd that tensors have new contents.
#pragma once

#include "core/tensor.h"

namespace tandem::kernels {

/// Tensor::mark_written of each tensor that is defined. Every dispatcher calls it for all that it is about to write,
/// before it writes any of it, so that a backward pass that saved the old contents fails rather than using the new
/// ones. `op` is named in messages.
template <typename... Tensors>
void mark_written(std::string_view op, const Tensors&... tensors) {
  const auto mark = [op](const Tensor& tensor) {
    if (tensor.defined()) tensor.mark_written(op);
  };
  (mark(tensors), ...);
}

}  // namespace tandem::kernels
