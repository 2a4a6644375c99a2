// What an op that memory bounds is on a timeline.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/core/timeline.h"

namespace tandem::kernels {

/// An op that reads or writes each of these tensors once, the least that it moves: what it reads and writes is given
/// twice. Undefined ones count nothing. Its operations are not counted: they are hidden behind the memory.
/// Dispatchers tell it in front of the choice of an implementation.
template <typename... Tensors>
void note_traffic(const Tensors&... tensors) {
  if (!timeline_is_recorded()) [[likely]]
    return;
  const auto bytes = [](const Tensor& tensor) {
    return tensor.defined() ? static_cast<double>(tensor.numel() * size_of(tensor.dtype())) : 0.0;
  };
  add_work(0.0, (bytes(tensors) + ... + 0.0));
}

}  // namespace tandem::kernels
