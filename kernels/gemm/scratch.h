// Temporary float buffers for one kernel call, counted as workspace.
#pragma once

#include "core/memory.h"
#include "core/tensor.h"

#include <cstdint>

namespace tandem::kernels {

/// Uninitialised floats, aligned to kAlignment, given back when the object goes.
class Scratch {
 public:
  explicit Scratch(std::int64_t floats) {
    const MemoryTagScope scope(MemoryTag::workspace);
    tensor_ = Tensor::empty({floats});
    data_ = tensor_.data<float>();
  }
  float* data() const { return data_; }

 private:
  Tensor tensor_;
  float* data_ = nullptr;
};

}  // namespace tandem::kernels
