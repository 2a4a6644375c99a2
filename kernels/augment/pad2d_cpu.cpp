// Padding on the CPU: channels_last rows are copied whole.
#include "core/parallel.h"
#include "kernels/augment/pad2d.h"

namespace tandem::kernels::cpu {

namespace {

/// The row of an image that output row `h` shows, or -1 for a row of zeros.
std::int64_t source_row(std::int64_t h, const Pad2dOptions& options, std::int64_t height) {
  const std::int64_t row = h - options.top;
  if (options.mode == PadMode::reflect) return detail::reflect(row, height);
  return row >= 0 && row < height ? row : -1;
}

}  // namespace

bool pad2d_supports(const Tensor& x, const Tensor& out) {
  return x.dtype() == DType::f32 && x.device().type == DeviceType::cpu && x.is_dense(Layout::channels_last) &&
         out.is_dense(Layout::channels_last);
}

void pad2d(const Tensor& x, const Pad2dOptions& options, const Tensor& out) {
  if (out.numel() == 0) return;
  const std::int64_t channels = x.size(1), height = x.size(2), width = x.size(3);
  const std::int64_t out_height = out.size(2), out_row = out.size(3) * channels;
  const float* const from = x.data<float>();
  float* const to = out.data<float>();
  parallel_for(out.size(0) * out_height, std::max<std::int64_t>(1, 16384 / out_row),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   float* const row = to + i * out_row;
                   const std::int64_t h = source_row(i % out_height, options, height);
                   if (h < 0) {
                     std::fill_n(row, out_row, 0.0f);
                     continue;
                   }
                   const float* const source = from + (i / out_height * height + h) * width * channels;
                   std::copy_n(source, width * channels, row + options.left * channels);
                   const auto fill_column = [&](std::int64_t w) {
                     float* const pixel = row + w * channels;
                     if (options.mode == PadMode::zero)
                       std::fill_n(pixel, channels, 0.0f);
                     else
                       std::copy_n(source + detail::reflect(w - options.left, width) * channels, channels, pixel);
                   };
                   for (std::int64_t w = 0; w < options.left; ++w) fill_column(w);
                   for (std::int64_t w = options.left + width; w < out.size(3); ++w) fill_column(w);
                 }
               });
}

void pad2d_backward(const Tensor& grad_out, const Pad2dOptions& options, const Tensor& grad_x) {
  if (grad_x.numel() == 0) return;
  const std::int64_t channels = grad_x.size(1), height = grad_x.size(2), width = grad_x.size(3);
  const std::int64_t out_height = grad_out.size(2), out_width = grad_out.size(3);
  const float* const from = grad_out.data<float>();
  float* const to = grad_x.data<float>();
  parallel_for(grad_x.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      float* const image = to + n * height * width * channels;
      std::fill_n(image, height * width * channels, 0.0f);
      for (std::int64_t i = 0; i < out_height; ++i) {
        const std::int64_t h = source_row(i, options, height);
        if (h < 0) continue;
        const float* const row = from + (n * out_height + i) * out_width * channels;
        const auto add = [&](std::int64_t w, std::int64_t column, std::int64_t count) {
          float* const sum = image + (h * width + w) * channels;
          const float* const grad = row + column * channels;
          for (std::int64_t k = 0; k < count * channels; ++k) sum[k] += grad[k];
        };
        add(0, options.left, width);
        if (options.mode == PadMode::zero) continue;
        for (std::int64_t w = 0; w < options.left; ++w) add(detail::reflect(w - options.left, width), w, 1);
        for (std::int64_t w = options.left + width; w < out_width; ++w)
          add(detail::reflect(w - options.left, width), w, 1);
      }
    }
  });
}

}  // namespace tandem::kernels::cpu
