// Mirroring on the CPU: pixels of channels_last rows, last to first.
#include "tandem/core/parallel.h"
#include "tandem/kernels/augment/flip_horizontal_implementations.h"

namespace tandem::kernels::cpu {

namespace {

template <typename T>
void flip(const Tensor& x, const Out& out) {
  const std::int64_t channels = x.size(1), width = x.size(3);
  const T* const from = x.data<T>();
  T* const to = out.data<T>();
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / (width * channels));
  parallel_for(x.size(0) * x.size(2), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* const source = from + row * width * channels;
      T* const target = to + row * width * channels;
      for (std::int64_t w = 0; w < width; ++w) {
        const T* const pixel = source + (width - 1 - w) * channels;
        for (std::int64_t c = 0; c < channels; ++c) target[w * channels + c] = pixel[c];
      }
    }
  });
}

}  // namespace

bool flip_horizontal_supports(const Tensor& x, const Tensor& out) {
  return x.device().type == DeviceType::cpu && x.is_dense(Layout::channels_last) && out.is_dense(Layout::channels_last);
}

void flip_horizontal(const Tensor& x, const Out& out) {
  if (x.numel() == 0) return;
  dispatch_floating(x.dtype(), "flip_horizontal", [&](auto tag) { flip<typename decltype(tag)::type>(x, out); });
}

}  // namespace tandem::kernels::cpu
