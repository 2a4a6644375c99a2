// Element access to 4-D N,C,H,W tensors of any strides; what the reference kernels read and write through.
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// `view(n, c, h, w)` is the element of that index; ImageView<const T> reads a Tensor, ImageView<T> writes an Out.
template <typename T>
class ImageView {
 public:
  explicit ImageView(const Tensor& tensor)
    requires std::is_const_v<T>
      : data_(tensor.data<std::remove_const_t<T>>()), strides_(strides_of(tensor)) {}
  explicit ImageView(const Out& out)
    requires(!std::is_const_v<T>)
      : data_(out.data<T>()), strides_(strides_of(out)) {}

  T& operator()(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    const std::int64_t* const s = strides_.begin();
    return data_[n * s[0] + c * s[1] + h * s[2] + w * s[3]];
  }

 private:
  static const Strides& strides_of(const Tensor& tensor) {
    require(tensor.rank() == 4, "ImageView: needs rank 4, got {}", describe(tensor));
    return tensor.strides();
  }

  T* data_;
  Strides strides_;
};

}  // namespace tandem::kernels
