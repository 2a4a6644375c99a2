// The loop over all pixels and channels of images on CUDA that reads other images of another height and width.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/device/nest.h"

namespace tandem::kernels::cuda {

/// Elements come as vectors of `width` channels: 16 bytes of them where layout and alignment of both sides allow it,
/// else one. All strides count in vectors. The nest's operands are `to`; `from` at row and column 0; the row; the
/// column.
struct ImageLoop {
  int width;
  device::HostNest<4> nest;
  std::int64_t row_step, column_step;  // of `from`

  ImageLoop(const Tensor& to, const Tensor& from)
      : width(vector_width(to, from)),
        nest(shape_in_vectors(to),
             {strides_in_vectors(to), with_zeros(strides_in_vectors(from)), Strides{0, 0, 1, 0}, Strides{0, 0, 0, 1}}),
        row_step(strides_in_vectors(from)[2]),
        column_step(strides_in_vectors(from)[3]) {}

 private:
  static bool allows(const Tensor& tensor, std::int64_t most) {
    bool fits = tensor.size(1) % most == 0 && tensor.stride(1) == 1 &&
                reinterpret_cast<std::uintptr_t>(tensor.raw_data()) % 16 == 0;
    for (const int dim : {0, 2, 3}) fits = fits && (tensor.size(dim) <= 1 || tensor.stride(dim) % most == 0);
    return fits;
  }
  static int vector_width(const Tensor& to, const Tensor& from) {
    const std::int64_t most = 16 / size_of(to.dtype());
    return allows(to, most) && allows(from, most) ? static_cast<int>(most) : 1;
  }
  Shape shape_in_vectors(const Tensor& tensor) const {
    Shape shape = tensor.shape();
    shape[1] /= width;
    return shape;
  }
  Strides strides_in_vectors(const Tensor& tensor) const {
    Strides strides = tensor.strides();
    for (const int dim : {0, 2, 3}) strides[dim] /= width;
    return strides;
  }
  static Strides with_zeros(Strides strides) {
    strides[2] = strides[3] = 0;
    return strides;
  }
};

}  // namespace tandem::kernels::cuda
