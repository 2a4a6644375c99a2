// Average pooling of f32 channels_last images: threads share out rows, vectors run over channels.
#include "core/parallel.h"
#include "kernels/pool/avg_pool2d.h"

#include <vector>

namespace tandem::kernels::cpu {

namespace {

constexpr std::int64_t kGrainElements = 1 << 14;

void add_scaled(const float* __restrict x, float factor, std::int64_t channels, float* __restrict sum) {
  for (std::int64_t c = 0; c < channels; ++c) sum[c] += factor * x[c];
}

}  // namespace

bool supports_avg_pool2d(const Tensor& x, const Tensor& y) {
  return x.dtype() == DType::f32 && x.is_dense(Layout::channels_last) && y.is_dense(Layout::channels_last);
}

void avg_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y) {
  const std::int64_t channels = x.size(1), height = x.size(2), width = x.size(3), y_height = y.size(2),
                     y_width = y.size(3);
  const float* const in = x.data<float>();
  float* const out = y.data<float>();
  const std::int64_t grain = std::max<std::int64_t>(1, kGrainElements / (width * channels));
  parallel_for(y.size(0) * y_height, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* const image = in + row / y_height * height * width * channels;
      const std::int64_t i = row % y_height;
      const PoolRange rows = pool_range(i, 0, height, options);
      for (std::int64_t j = 0; j < y_width; ++j) {
        const PoolRange columns = pool_range(j, 1, width, options);
        const auto weight = static_cast<float>(avg_pool2d_weight(i, j, height, width, options));
        float* const pixel = out + (row * y_width + j) * channels;
        std::fill_n(pixel, channels, 0.0f);
        for (std::int64_t h = rows.begin; h < rows.end; ++h) {
          for (std::int64_t w = columns.begin; w < columns.end; ++w) {
            add_scaled(image + (h * width + w) * channels, weight, channels, pixel);
          }
        }
      }
    }
  });
}

void avg_pool2d_backward(const Tensor& grad_y, const Pool2dOptions& options, const Tensor& grad_x) {
  const std::int64_t channels = grad_x.size(1), height = grad_x.size(2), width = grad_x.size(3);
  const std::int64_t y_height = grad_y.size(2), y_width = grad_y.size(3);
  const float* const gradient = grad_y.data<float>();
  float* const out = grad_x.data<float>();
  std::vector<PoolRange> covering_columns;
  for (std::int64_t w = 0; w < width; ++w) covering_columns.push_back(covering_outputs(w, 1, y_width, options));
  const std::int64_t grain = std::max<std::int64_t>(1, kGrainElements / (width * channels));
  // Each row of grad_x gathers from the windows that cover it: no two threads write one element.
  parallel_for(grad_x.size(0) * height, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t n = row / height;
      const PoolRange rows = covering_outputs(row % height, 0, y_height, options);
      for (std::int64_t w = 0; w < width; ++w) {
        float* const pixel = out + (row * width + w) * channels;
        const PoolRange columns = covering_columns[static_cast<std::size_t>(w)];
        std::fill_n(pixel, channels, 0.0f);
        for (std::int64_t i = rows.begin; i < rows.end; ++i) {
          for (std::int64_t j = columns.begin; j < columns.end; ++j) {
            const auto weight = static_cast<float>(avg_pool2d_weight(i, j, height, width, options));
            add_scaled(gradient + ((n * y_height + i) * y_width + j) * channels, weight, channels, pixel);
          }
        }
      }
    }
  });
}

}  // namespace tandem::kernels::cpu
