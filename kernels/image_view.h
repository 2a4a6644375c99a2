// Element access to 4-D N,C,H,W tensors of any strides; what the reference kernels read and write through.
#pragma once

#include "core/tensor.h"

namespace tandem::kernels {

/// `view(n, c, h, w)` is the element of that index.
template <typename T>
class ImageView {
 public:
  explicit ImageView(const Tensor& tensor) : data_(tensor.data<T>()), strides_(tensor.strides()) {
    require(tensor.rank() == 4, "ImageView: needs rank 4, got {}", describe(tensor));
  }

  T& operator()(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    const std::int64_t* const s = strides_.begin();
    return data_[n * s[0] + c * s[1] + h * s[2] + w * s[3]];
  }

 private:
  T* data_;
  Strides strides_;
};

}  // namespace tandem::kernels
