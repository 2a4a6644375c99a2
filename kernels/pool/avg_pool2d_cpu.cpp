// Average pooling of channels_last images of floats or halves: threads share out rows, vectors run over channels.
#include "tandem/core/parallel.h"
#include "tandem/kernels/gemm/simd.h"
#include "tandem/kernels/pool/avg_pool2d_implementations.h"
#include "tandem/kernels/pool/channel_vectors.h"

#include <vector>

namespace tandem::kernels::cpu {

namespace {

template <typename T>
void forward(const Tensor& x, const Pool2dOptions& options, const Out& y) {
  const std::int64_t channels = x.size(1), height = x.size(2), width = x.size(3), y_height = y.size(2),
                     y_width = y.size(3);
  const T* const in = x.data<T>();
  T* const out = y.data<T>();
  parallel_for(y.size(0) * y_height, rows_per_part(width * channels), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* const image = in + row / y_height * height * width * channels;
      const std::int64_t i = row % y_height;
      const PoolRange rows = pool_range(i, 0, height, options);
      for (std::int64_t j = 0; j < y_width; ++j) {
        const PoolRange columns = pool_range(j, 1, width, options);
        const auto weight = static_cast<float>(avg_pool2d_weight(i, j, height, width, options));
        for_each_vector(channels, [&](Channels part) {
          simd::Vec sum{};
          for (std::int64_t h = rows.begin; h < rows.end; ++h)
            for (std::int64_t w = columns.begin; w < columns.end; ++w)
              sum += weight * part.load(image + (h * width + w) * channels);
          part.store(out + (row * y_width + j) * channels, sum);
        });
      }
    }
  });
}

/// A window over some pixel, and what the pixel weighs in it.
template <typename T>
struct CoveringWindow {
  const T* gradient;
  float weight;
};

template <typename T>
void backward(const Tensor& grad_y, const Pool2dOptions& options, const Out& grad_x) {
  const std::int64_t channels = grad_x.size(1), height = grad_x.size(2), width = grad_x.size(3);
  const std::int64_t y_height = grad_y.size(2), y_width = grad_y.size(3);
  const T* const gradient = grad_y.data<T>();
  T* const out = grad_x.data<T>();
  std::vector<PoolRange> covering_columns;
  for (std::int64_t w = 0; w < width; ++w) covering_columns.push_back(covering_outputs(w, 1, y_width, options));
  // Each row of grad_x gathers from the windows that cover it: no two threads write one element.
  parallel_for(grad_x.size(0) * height, rows_per_part(width * channels), [&](std::int64_t begin, std::int64_t end) {
    std::vector<CoveringWindow<T>> windows;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t n = row / height;
      const PoolRange rows = covering_outputs(row % height, 0, y_height, options);
      for (std::int64_t w = 0; w < width; ++w) {
        const PoolRange columns = covering_columns[static_cast<std::size_t>(w)];
        windows.clear();
        for (std::int64_t i = rows.begin; i < rows.end; ++i)
          for (std::int64_t j = columns.begin; j < columns.end; ++j)
            windows.push_back({gradient + ((n * y_height + i) * y_width + j) * channels,
                               static_cast<float>(avg_pool2d_weight(i, j, height, width, options))});
        for_each_vector(channels, [&](Channels part) {
          simd::Vec sum{};
          for (const CoveringWindow<T>& window : windows) sum += window.weight * part.load(window.gradient);
          part.store(out + (row * width + w) * channels, sum);
        });
      }
    }
  });
}

}  // namespace

bool supports_avg_pool2d(const Tensor& x, const Tensor& y) {
  return computes_in_float(x.dtype()) && x.is_dense(Layout::channels_last) && y.is_dense(Layout::channels_last);
}

void avg_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Out& y) {
  dispatch_float(x.dtype(), "avg_pool2d", [&](auto tag) { forward<typename decltype(tag)::type>(x, options, y); });
}

void avg_pool2d_backward(const Tensor& grad_y, const Pool2dOptions& options, const Out& grad_x) {
  dispatch_float(grad_x.dtype(), "avg_pool2d_backward",
                 [&](auto tag) { backward<typename decltype(tag)::type>(grad_y, options, grad_x); });
}

}  // namespace tandem::kernels::cpu
