// Dropout in plain loops: any strides, any floating dtype.
#include "tandem/kernels/dropout/dropout_implementations.h"

namespace tandem::kernels::reference {

void dropout_forward(const Tensor& x, double p, const RandomKey& key, const Out& y) {
  const std::uint32_t threshold = detail::dropout_threshold(p);
  const double scale = p < 1.0 ? 1.0 / (1.0 - p) : 0.0;
  const Strides index_strides = dense_strides(x.shape(), Layout::channels_last);
  dispatch_floating(x.dtype(), "dropout", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const from = x.data<T>();
    T* const to = y.data<T>();
    Shape position = x.shape();
    for (int dim = 0; dim < x.rank(); ++dim) position[dim] = 0;
    for (std::int64_t done = 0; done < x.numel(); ++done) {
      std::int64_t index = 0, from_offset = 0, to_offset = 0;
      for (int dim = 0; dim < x.rank(); ++dim) {
        index += position[dim] * index_strides[dim];
        from_offset += position[dim] * x.stride(dim);
        to_offset += position[dim] * y.stride(dim);
      }
      const bool kept = key.bits(static_cast<std::uint64_t>(index)) >> 8 >= threshold;
      to[to_offset] = T(static_cast<compute_t<T>>(kept ? static_cast<double>(from[from_offset]) * scale : 0.0));
      for (int dim = x.rank() - 1; dim >= 0 && ++position[dim] == x.size(dim); --dim) position[dim] = 0;
    }
  });
}

}  // namespace tandem::kernels::reference
