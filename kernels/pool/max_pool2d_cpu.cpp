// Max pooling of f32 channels_last images: threads share out rows, vectors run over channels.
#include "core/parallel.h"
#include "kernels/pool/max_pool2d.h"

#include <vector>

namespace tandem::kernels::cpu {

namespace {

constexpr std::int64_t kGrainElements = 1 << 14;

std::int64_t rows_per_part(std::int64_t row_elements) {
  return std::max<std::int64_t>(1, kGrainElements / row_elements);
}

/// The 2x2 window in registers. `rows` point at its upper-left and lower-left pixel.
template <bool kIndices>
void pool_2x2(const float* upper, const float* lower, std::int64_t channels, float* __restrict y,
              std::uint8_t* __restrict indices) {
  const float* const p[4] = {upper, upper + channels, lower, lower + channels};
  for (std::int64_t c = 0; c < channels; ++c) {
    float best = p[0][c];
    std::int32_t winner = 0;
    for (int k = 1; k < 4; ++k) {
      const float value = p[k][c];
      const bool better = (value > best) | (value != value);
      best = better ? value : best;
      winner = better ? k : winner;
    }
    y[c] = best;
    if (kIndices) indices[c] = static_cast<std::uint8_t>(winner);
  }
}

/// One pixel of a further window position against the best so far.
template <bool kIndices>
void challenge(const float* __restrict x, std::int64_t channels, std::uint8_t position, float* __restrict y,
               std::uint8_t* __restrict indices) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const float value = x[c];
    const bool better = (value > y[c]) | (value != value);
    y[c] = better ? value : y[c];
    if (kIndices) indices[c] = better ? position : indices[c];
  }
}

template <bool kIndices>
void forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y, const Tensor& indices) {
  const std::int64_t channels = x.size(1), height = x.size(2), width = x.size(3), y_height = y.size(2),
                     y_width = y.size(3);
  const float* const in = x.data<float>();
  float* const out = y.data<float>();
  std::uint8_t* const positions = kIndices ? indices.data<std::uint8_t>() : nullptr;
  parallel_for(y.size(0) * y_height, rows_per_part(4 * y_width * channels), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* const image = in + row / y_height * height * width * channels;
      const PoolRange rows = pool_range(row % y_height, 0, height, options);
      for (std::int64_t j = 0; j < y_width; ++j) {
        const PoolRange columns = pool_range(j, 1, width, options);
        float* const pixel = out + (row * y_width + j) * channels;
        std::uint8_t* const position = kIndices ? positions + (row * y_width + j) * channels : nullptr;
        if (options.kernel == std::array<std::int64_t, 2>{2, 2} && rows.end - rows.begin == 2 &&
            columns.end - columns.begin == 2) {
          const float* const upper = image + (rows.begin * width + columns.begin) * channels;
          pool_2x2<kIndices>(upper, upper + width * channels, channels, pixel, position);
          continue;
        }
        bool is_first = true;
        for (std::int64_t i = rows.begin; i < rows.end; ++i) {
          for (std::int64_t k = columns.begin; k < columns.end; ++k) {
            const float* const source = image + (i * width + k) * channels;
            const auto code = static_cast<std::uint8_t>((i - rows.first) * options.kernel[1] + k - columns.first);
            if (is_first) {
              std::copy_n(source, channels, pixel);
              if (kIndices) std::fill_n(position, channels, code);
            } else {
              challenge<kIndices>(source, channels, code, pixel, position);
            }
            is_first = false;
          }
        }
      }
    }
  });
}

/// Writes (or adds) the gradient where this window position has won, zero elsewhere.
template <bool kAdd>
void route(const float* __restrict gradient, const std::uint8_t* __restrict winner, std::int64_t channels,
           std::uint8_t position, float* __restrict out) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const float routed = winner[c] == position ? gradient[c] : 0.0f;
    out[c] = kAdd ? out[c] + routed : routed;
  }
}

}  // namespace

bool supports_max_pool2d(const Tensor& x, const Tensor& y, const Tensor& indices) {
  return x.dtype() == DType::f32 && x.is_dense(Layout::channels_last) && y.is_dense(Layout::channels_last) &&
         (!indices.defined() || (indices.dtype() == DType::u8 && indices.is_dense(Layout::channels_last)));
}

void max_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y, const Tensor& indices) {
  if (indices.defined()) return forward<true>(x, options, y, indices);
  forward<false>(x, options, y, indices);
}

void max_pool2d_backward(const Tensor& grad_y, const Tensor& indices, const Pool2dOptions& options,
                         const Tensor& grad_x) {
  const std::int64_t channels = grad_x.size(1), height = grad_x.size(2), width = grad_x.size(3);
  const std::int64_t y_height = grad_y.size(2), y_width = grad_y.size(3);
  const float* const gradient = grad_y.data<float>();
  const std::uint8_t* const winner = indices.data<std::uint8_t>();
  float* const out = grad_x.data<float>();
  std::vector<PoolRange> covering_columns;
  for (std::int64_t w = 0; w < width; ++w) covering_columns.push_back(covering_outputs(w, 1, y_width, options));
  // Each row of grad_x gathers from the windows that cover it: no two threads write one element.
  parallel_for(grad_x.size(0) * height, rows_per_part(width * channels), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t n = row / height, h = row % height;
      const PoolRange outputs = covering_outputs(h, 0, y_height, options);
      for (std::int64_t w = 0; w < width; ++w) {
        float* const pixel = out + (row * width + w) * channels;
        const PoolRange columns = covering_columns[static_cast<std::size_t>(w)];
        bool is_first = true;
        for (std::int64_t i = outputs.begin; i < outputs.end; ++i) {
          for (std::int64_t j = columns.begin; j < columns.end; ++j) {
            const std::int64_t from = ((n * y_height + i) * y_width + j) * channels;
            const std::int64_t code = (h - i * options.stride[0] + options.padding[0]) * options.kernel[1] + w -
                                      j * options.stride[1] + options.padding[1];
            const auto route_here = is_first ? route<false> : route<true>;
            route_here(gradient + from, winner + from, channels, static_cast<std::uint8_t>(code), pixel);
            is_first = false;
          }
        }
        if (is_first) std::fill_n(pixel, channels, 0.0f);
      }
    }
  });
}

}  // namespace tandem::kernels::cpu
