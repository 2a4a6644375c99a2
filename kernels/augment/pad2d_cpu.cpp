// Padding on the CPU: channels_last rows are copied whole.
#include "tandem/core/parallel.h"
#include "tandem/kernels/augment/pad2d_implementations.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/gemm/simd.h"

#include <vector>

namespace tandem::kernels::cpu {

namespace {

/// The row of an image that output row `h` shows, or -1 for a row of zeros.
std::int64_t source_row(std::int64_t h, const Pad2dOptions& options, std::int64_t height) {
  const std::int64_t row = h - options.top;
  if (options.mode == PadMode::reflect) return detail::reflect(row, height);
  return row >= 0 && row < height ? row : -1;
}

template <typename T>
void pad(const Tensor& x, const Pad2dOptions& options, const Out& out) {
  const std::int64_t channels = x.size(1), height = x.size(2), width = x.size(3);
  const std::int64_t out_height = out.size(2), out_row = out.size(3) * channels;
  const T* const from = x.data<T>();
  T* const to = out.data<T>();
  parallel_for(out.size(0) * out_height, std::max<std::int64_t>(1, 16384 / out_row),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   T* const row = to + i * out_row;
                   const std::int64_t h = source_row(i % out_height, options, height);
                   if (h < 0) {
                     std::fill_n(row, out_row, T{});
                     continue;
                   }
                   const T* const source = from + (i / out_height * height + h) * width * channels;
                   std::copy_n(source, width * channels, row + options.left * channels);
                   const auto fill_column = [&](std::int64_t w) {
                     T* const pixel = row + w * channels;
                     if (options.mode == PadMode::zero)
                       std::fill_n(pixel, channels, T{});
                     else
                       std::copy_n(source + detail::reflect(w - options.left, width) * channels, channels, pixel);
                   };
                   for (std::int64_t w = 0; w < options.left; ++w) fill_column(w);
                   for (std::int64_t w = options.left + width; w < out.size(3); ++w) fill_column(w);
                 }
               });
}

/// sums[i] += values[i]
template <typename T>
void add_run(const T* values, std::int64_t count, float* sums) {
  std::int64_t i = 0;
  for (; i + simd::kLanes <= count; i += simd::kLanes)
    simd::store(sums + i, simd::load(sums + i) + simd::load(values + i));
  for (; i < count; ++i) sums[i] += static_cast<float>(values[i]);
}

template <typename T>
void add_up(const Tensor& grad_out, const Pad2dOptions& options, const Out& grad_x) {
  const std::int64_t channels = grad_x.size(1), height = grad_x.size(2), width = grad_x.size(3);
  const std::int64_t out_height = grad_out.size(2), out_width = grad_out.size(3);
  const std::int64_t size = height * width * channels;
  const T* const from = grad_out.data<T>();
  T* const to = grad_x.data<T>();
  parallel_for(grad_x.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> sums(static_cast<std::size_t>(is_float<T> ? 0 : size));
    for (std::int64_t n = begin; n < end; ++n) {
      float* image = sums.data();
      if constexpr (is_float<T>) image = to + n * size;
      std::fill_n(image, size, 0.0f);
      for (std::int64_t i = 0; i < out_height; ++i) {
        const std::int64_t h = source_row(i, options, height);
        if (h < 0) continue;
        const T* const row = from + (n * out_height + i) * out_width * channels;
        const auto add = [&](std::int64_t w, std::int64_t column, std::int64_t count) {
          float* const sum = image + (h * width + w) * channels;
          const T* const grad = row + column * channels;
          add_run(grad, count * channels, sum);
        };
        add(0, options.left, width);
        if (options.mode == PadMode::zero) continue;
        for (std::int64_t w = 0; w < options.left; ++w) add(detail::reflect(w - options.left, width), w, 1);
        for (std::int64_t w = options.left + width; w < out_width; ++w)
          add(detail::reflect(w - options.left, width), w, 1);
      }
      if constexpr (!is_float<T>) round_floats(image, size, to + n * size);
    }
  });
}

}  // namespace

bool pad2d_supports(const Tensor& x, const Tensor& out) {
  return computes_in_float(x.dtype()) && x.device().type == DeviceType::cpu && x.is_dense(Layout::channels_last) &&
         out.is_dense(Layout::channels_last);
}

void pad2d(const Tensor& x, const Pad2dOptions& options, const Out& out) {
  if (out.numel() == 0) return;
  dispatch_float(x.dtype(), "pad2d", [&](auto tag) { pad<typename decltype(tag)::type>(x, options, out); });
}

void pad2d_backward(const Tensor& grad_out, const Pad2dOptions& options, const Out& grad_x) {
  if (grad_x.numel() == 0) return;
  dispatch_float(grad_x.dtype(), "pad2d_backward",
                 [&](auto tag) { add_up<typename decltype(tag)::type>(grad_out, options, grad_x); });
}

}  // namespace tandem::kernels::cpu
