// Temporary buffers for one kernel call, counted as workspace.
#pragma once

#include "core/memory.h"
#include "core/tensor.h"

#include <cstdint>

namespace tandem::kernels {

/// Uninitialised elements, aligned to kAlignment, given back when the object goes.
template <typename T>
class ScratchOf {
 public:
  explicit ScratchOf(std::int64_t count) {
    const MemoryTagScope scope(MemoryTag::workspace);
    tensor_ = Tensor::empty({count}, {.dtype = dtype_of<T>});
    data_ = tensor_.data<T>();
  }
  T* data() const { return data_; }

 private:
  Tensor tensor_;
  T* data_ = nullptr;
};

using Scratch = ScratchOf<float>;

}  // namespace tandem::kernels
