// Temporary buffers for one kernel call, counted as workspace.
#pragma once

#include "tandem/core/memory.h"
#include "tandem/core/out.h"

#include <cstdint>

namespace tandem::kernels {

/// Uninitialised elements, aligned to kAlignment, given back when the object goes.
template <typename T>
class ScratchOf {
 public:
  /// No memory: data() is null.
  ScratchOf() = default;
  explicit ScratchOf(std::int64_t count) {
    const MemoryTagScope scope(MemoryTag::workspace);
    tensor_ = Tensor::empty({count}, {.dtype = dtype_of<T>});
    data_ = Out(tensor_).data<T>();
  }
  T* data() const { return data_; }

 private:
  Tensor tensor_;
  T* data_ = nullptr;
};

using Scratch = ScratchOf<float>;

}  // namespace tandem::kernels
