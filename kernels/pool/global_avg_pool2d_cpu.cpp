// Global average pooling of f32 channels_last images: one image per task, vectors over channels.
#include "core/parallel.h"
#include "kernels/pool/global_avg_pool2d.h"

namespace tandem::kernels::cpu {

namespace {
std::int64_t images_per_part(const Tensor& x) {
  return std::max<std::int64_t>(1, (1 << 14) / (x.size(1) * x.size(2) * x.size(3)));
}
}  // namespace

bool supports_global_avg_pool2d(const Tensor& x, const Tensor& y) {
  return x.dtype() == DType::f32 && x.is_dense(Layout::channels_last) && y.is_dense(Layout::channels_last);
}

void global_avg_pool2d_forward(const Tensor& x, const Tensor& y) {
  const std::int64_t channels = x.size(1), pixels = x.size(2) * x.size(3);
  const float* const in = x.data<float>();
  float* const out = y.data<float>();
  parallel_for(x.size(0), images_per_part(x), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      float* __restrict const mean = out + n * channels;
      std::fill_n(mean, channels, 0.0f);
      for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
        const float* const values = in + (n * pixels + pixel) * channels;
        for (std::int64_t c = 0; c < channels; ++c) mean[c] += values[c];
      }
      const float weight = 1.0f / static_cast<float>(pixels);
      for (std::int64_t c = 0; c < channels; ++c) mean[c] *= weight;
    }
  });
}

void global_avg_pool2d_backward(const Tensor& grad_y, const Tensor& grad_x) {
  const std::int64_t channels = grad_x.size(1), pixels = grad_x.size(2) * grad_x.size(3);
  const float* const gradient = grad_y.data<float>();
  float* const out = grad_x.data<float>();
  parallel_for(grad_x.size(0), images_per_part(grad_x), [&](std::int64_t begin, std::int64_t end) {
    const float weight = 1.0f / static_cast<float>(pixels);
    for (std::int64_t n = begin; n < end; ++n) {
      float* __restrict const first = out + n * pixels * channels;
      const float* const share = gradient + n * channels;
      for (std::int64_t c = 0; c < channels; ++c) first[c] = share[c] * weight;
      for (std::int64_t pixel = 1; pixel < pixels; ++pixel) std::copy_n(first, channels, first + pixel * channels);
    }
  });
}

}  // namespace tandem::kernels::cpu
