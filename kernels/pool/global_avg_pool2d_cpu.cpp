// Global average pooling of channels_last images of floats or halves: one image per task, vectors over channels.
#include "tandem/core/parallel.h"
#include "tandem/kernels/gemm/simd.h"
#include "tandem/kernels/pool/channel_vectors.h"
#include "tandem/kernels/pool/global_avg_pool2d_implementations.h"

namespace tandem::kernels::cpu {

namespace {

constexpr std::int64_t kPixelsInFloat = 256;  // of a sum; larger images add up such sums in double

template <typename T>
void forward(const Tensor& x, const Out& y) {
  const std::int64_t channels = x.size(1), pixels = x.size(2) * x.size(3);
  const T* const in = x.data<T>();
  T* const out = y.data<T>();
  const float weight = 1.0f / static_cast<float>(pixels);
  parallel_for(x.size(0), rows_per_part(channels * pixels), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      const T* const image = in + n * pixels * channels;
      for_each_vector(channels, [&](Channels part) {
        double total[simd::kLanes] = {};
        for (std::int64_t first = 0; first < pixels; first += kPixelsInFloat) {
          simd::Vec sum{};
          const std::int64_t end_pixel = std::min(pixels, first + kPixelsInFloat);
          for (std::int64_t pixel = first; pixel < end_pixel; ++pixel) sum += part.load(image + pixel * channels);
          for (int lane = 0; lane < simd::kLanes; ++lane) total[lane] += static_cast<double>(sum[lane]);
        }
        simd::Vec sum{};
        for (int lane = 0; lane < simd::kLanes; ++lane) sum[lane] = static_cast<float>(total[lane]);
        part.store(out + n * channels, sum * weight);
      });
    }
  });
}

template <typename T>
void backward(const Tensor& grad_y, const Out& grad_x) {
  const std::int64_t channels = grad_x.size(1), pixels = grad_x.size(2) * grad_x.size(3);
  const T* const gradient = grad_y.data<T>();
  T* const out = grad_x.data<T>();
  const float weight = 1.0f / static_cast<float>(pixels);
  parallel_for(grad_x.size(0), rows_per_part(channels * pixels), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      T* const first = out + n * pixels * channels;
      for_each_vector(channels, [&](Channels part) { part.store(first, part.load(gradient + n * channels) * weight); });
      for (std::int64_t pixel = 1; pixel < pixels; ++pixel) std::copy_n(first, channels, first + pixel * channels);
    }
  });
}

}  // namespace

bool supports_global_avg_pool2d(const Tensor& x, const Tensor& y) {
  return computes_in_float(x.dtype()) && x.is_dense(Layout::channels_last) && y.is_dense(Layout::channels_last);
}

void global_avg_pool2d_forward(const Tensor& x, const Out& y) {
  dispatch_float(x.dtype(), "global_avg_pool2d", [&](auto tag) { forward<typename decltype(tag)::type>(x, y); });
}

void global_avg_pool2d_backward(const Tensor& grad_y, const Out& grad_x) {
  dispatch_float(grad_x.dtype(), "global_avg_pool2d_backward",
                 [&](auto tag) { backward<typename decltype(tag)::type>(grad_y, grad_x); });
}

}  // namespace tandem::kernels::cpu
