// Max pooling of f32 channels_last images: threads share out rows, vectors run over channels.
#include "core/parallel.h"
#include "kernels/gemm/simd.h"
#include "kernels/pool/max_pool2d.h"

#include <algorithm>
#include <vector>

namespace tandem::kernels::cpu {

namespace {

using simd::IntVec;
using simd::kLanes;
using simd::Vec;
using ByteVec = std::uint8_t __attribute__((vector_size(kLanes)));

std::int64_t rows_per_part(std::int64_t row_elements) {
  constexpr std::int64_t kGrainElements = 1 << 14;
  return std::max<std::int64_t>(1, kGrainElements / std::max<std::int64_t>(row_elements, 1));
}

/// Bytes to integers. (GCC 12 turns __builtin_convertvector into scalar code here.)
IntVec widen(ByteVec bytes) {
#if defined(__AVX512F__)
  return reinterpret_cast<IntVec>(_mm512_maskz_cvtepu8_epi32(0xffff, reinterpret_cast<__m128i>(bytes)));
#elif defined(__AVX2__)
  __m128i low{};
  std::memcpy(&low, &bytes, sizeof bytes);
  return reinterpret_cast<IntVec>(_mm256_cvtepu8_epi32(low));
#else
  return __builtin_convertvector(bytes, IntVec);
#endif
}

/// kLanes channels from `c` on, or as many as there are.
struct Channels {
  std::int64_t c, count;
  bool all() const { return count == kLanes; }
  Vec load(const float* from) const { return all() ? simd::load(from + c) : simd::load_partial(from + c, count); }
  void store(float* to, Vec value) const {
    if (all()) return simd::store(to + c, value);
    simd::store_partial(to + c, value, count);
  }
  IntVec load_bytes(const std::uint8_t* from) const {
    ByteVec bytes{};
    if (all()) {
      std::memcpy(&bytes, from + c, sizeof bytes);
    } else {
      std::memcpy(&bytes, from + c, static_cast<std::size_t>(count));
    }
    return widen(bytes);
  }
  void store_bytes(std::uint8_t* to, IntVec value) const {
    const ByteVec bytes = __builtin_convertvector(value, ByteVec);
    if (all()) {
      std::memcpy(to + c, &bytes, sizeof bytes);
    } else {
      std::memcpy(to + c, &bytes, static_cast<std::size_t>(count));
    }
  }
};

template <typename Visitor>
void for_each_vector(std::int64_t channels, Visitor&& visit) {
  for (std::int64_t c = 0; c < channels; c += kLanes) visit(Channels{c, std::min<std::int64_t>(kLanes, channels - c)});
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
        const std::int64_t pixel = (row * y_width + j) * channels;
        const std::int64_t corner = (rows.begin - rows.first) * options.kernel[1] - columns.first;
        for_each_vector(channels, [&](Channels part) {
          Vec best = part.load(image + (rows.begin * width + columns.begin) * channels);
          IntVec winner = IntVec{} + static_cast<std::int32_t>(corner + columns.begin);
          for (std::int64_t h = rows.begin; h < rows.end; ++h) {
            const std::int64_t row_code = corner + (h - rows.begin) * options.kernel[1];
            for (std::int64_t w = columns.begin; w < columns.end; ++w) {
              const Vec value = part.load(image + (h * width + w) * channels);
              const IntVec better = (value > best) | (value != value);
              best = better ? value : best;
              if (kIndices) winner = better ? IntVec{} + static_cast<std::int32_t>(row_code + w) : winner;
            }
          }
          part.store(out + pixel, best);
          if (kIndices) part.store_bytes(positions + pixel, winner);
        });
      }
    }
  });
}

/// A window over some pixel, and the position of that pixel in it.
struct CoveringWindow {
  const float* gradient;
  const std::uint8_t* winner;
  std::int32_t position;
};

/// The gradients of the windows that the pixel has won.
void gather(const std::vector<CoveringWindow>& windows, std::int64_t channels, float* pixel) {
  for_each_vector(channels, [&](Channels part) {
    Vec sum{};
    for (const CoveringWindow& window : windows) {
      const IntVec won = part.load_bytes(window.winner) == window.position;
      sum += won ? part.load(window.gradient) : Vec{};
    }
    part.store(pixel, sum);
  });
}

/// Every pixel belongs to one window, or to none where the windows leave a rest at the right and at the bottom.
bool windows_side_by_side(const Pool2dOptions& options) {
  return options.stride == options.kernel && options.padding[0] == 0 && options.padding[1] == 0 && !options.ceil_mode;
}

/// Backward for windows side by side: each window writes its pixels.
void spread(const Tensor& grad_y, const Tensor& indices, const Pool2dOptions& options, const Tensor& grad_x) {
  const std::int64_t channels = grad_x.size(1), height = grad_x.size(2), width = grad_x.size(3);
  const std::int64_t y_height = grad_y.size(2), y_width = grad_y.size(3);
  const std::int64_t rows = options.kernel[0], columns = options.kernel[1], row_floats = width * channels;
  const float* const gradient = grad_y.data<float>();
  const std::uint8_t* const winner = indices.data<std::uint8_t>();
  float* const out = grad_x.data<float>();
  const auto grain = rows_per_part(rows * row_floats);
  parallel_for(grad_y.size(0) * y_height, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t n = row / y_height, i = row % y_height;
      float* const band = out + (n * height + i * rows) * row_floats;
      for (std::int64_t j = 0; j < y_width; ++j) {
        const std::int64_t from = (row * y_width + j) * channels;
        for_each_vector(channels, [&](Channels part) {
          const Vec value = part.load(gradient + from);
          const IntVec won = part.load_bytes(winner + from);
          std::int32_t position = 0;
          for (std::int64_t h = 0; h < rows; ++h)
            for (std::int64_t w = 0; w < columns; ++w, ++position)
              part.store(band + h * row_floats + (j * columns + w) * channels, won == position ? value : Vec{});
        });
      }
      const std::int64_t covered = y_width * columns * channels;
      for (std::int64_t h = 0; h < rows; ++h)
        std::fill_n(band + h * row_floats + covered, row_floats - covered, 0.0f);
      if (i + 1 == y_height) std::fill_n(band + rows * row_floats, (height - y_height * rows) * row_floats, 0.0f);
    }
  });
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
  if (windows_side_by_side(options)) return spread(grad_y, indices, options, grad_x);
  const std::int64_t channels = grad_x.size(1), height = grad_x.size(2), width = grad_x.size(3);
  const std::int64_t y_height = grad_y.size(2), y_width = grad_y.size(3);
  const float* const gradient = grad_y.data<float>();
  const std::uint8_t* const winner = indices.data<std::uint8_t>();
  float* const out = grad_x.data<float>();
  std::vector<PoolRange> covering_columns;
  for (std::int64_t w = 0; w < width; ++w) covering_columns.push_back(covering_outputs(w, 1, y_width, options));
  // Each row of grad_x gathers from the windows that cover it: no two threads write one element.
  parallel_for(grad_x.size(0) * height, rows_per_part(width * channels), [&](std::int64_t begin, std::int64_t end) {
    std::vector<CoveringWindow> windows;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t n = row / height, h = row % height;
      const PoolRange rows = covering_outputs(h, 0, y_height, options);
      for (std::int64_t w = 0; w < width; ++w) {
        const PoolRange columns = covering_columns[static_cast<std::size_t>(w)];
        windows.clear();
        for (std::int64_t i = rows.begin; i < rows.end; ++i) {
          const std::int64_t window_row = h - i * options.stride[0] + options.padding[0];
          for (std::int64_t j = columns.begin; j < columns.end; ++j) {
            const std::int64_t window_column = w - j * options.stride[1] + options.padding[1];
            const std::int64_t from = ((n * y_height + i) * y_width + j) * channels;
            windows.push_back({gradient + from, winner + from,
                               static_cast<std::int32_t>(window_row * options.kernel[1] + window_column)});
          }
        }
        gather(windows, channels, out + (row * width + w) * channels);
      }
    }
  });
}

}  // namespace tandem::kernels::cpu
