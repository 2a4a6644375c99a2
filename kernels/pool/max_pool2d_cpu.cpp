// Max pooling of channels_last images of floats or halves: threads share out rows, vectors run over channels.
#include "tandem/core/parallel.h"
#include "tandem/kernels/gemm/simd.h"
#include "tandem/kernels/pool/channel_vectors.h"
#include "tandem/kernels/pool/max_pool2d_implementations.h"

#include <algorithm>
#include <vector>

namespace tandem::kernels::cpu {

namespace {

using simd::IntVec;
using simd::kLanes;
using simd::Vec;
using ByteVec = std::uint8_t __attribute__((vector_size(kLanes)));

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

IntVec load_bytes(Channels part, const std::uint8_t* from) {
  ByteVec bytes{};
  if (part.all()) {
    std::memcpy(&bytes, from + part.first, sizeof bytes);
  } else {
    std::memcpy(&bytes, from + part.first, static_cast<std::size_t>(part.count));
  }
  return widen(bytes);
}

void store_bytes(Channels part, std::uint8_t* to, IntVec value) {
  const ByteVec bytes = __builtin_convertvector(value, ByteVec);
  if (part.all()) {
    std::memcpy(to + part.first, &bytes, sizeof bytes);
  } else {
    std::memcpy(to + part.first, &bytes, static_cast<std::size_t>(part.count));
  }
}

template <typename T, bool kIndices>
void forward(const Tensor& x, const Pool2dOptions& options, const Out& y, const Out& indices) {
  const std::int64_t channels = x.size(1), height = x.size(2), width = x.size(3), y_height = y.size(2),
                     y_width = y.size(3);
  const T* const in = x.data<T>();
  T* const out = y.data<T>();
  std::uint8_t* const positions = kIndices ? indices.data<std::uint8_t>() : nullptr;
  parallel_for(y.size(0) * y_height, rows_per_part(4 * y_width * channels), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* const image = in + row / y_height * height * width * channels;
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
          if (kIndices) store_bytes(part, positions + pixel, winner);
        });
      }
    }
  });
}

/// A window over some pixel, and the position of that pixel in it.
template <typename T>
struct CoveringWindow {
  const T* gradient;
  const std::uint8_t* winner;
  std::int32_t position;
};

/// The gradients of the windows that the pixel has won.
template <typename T>
void gather(const std::vector<CoveringWindow<T>>& windows, std::int64_t channels, T* pixel) {
  for_each_vector(channels, [&](Channels part) {
    Vec sum{};
    for (const CoveringWindow<T>& window : windows) {
      const IntVec won = load_bytes(part, window.winner) == window.position;
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
template <typename T>
void spread(const Tensor& grad_y, const Tensor& indices, const Pool2dOptions& options, const Out& grad_x) {
  const std::int64_t channels = grad_x.size(1), height = grad_x.size(2), width = grad_x.size(3);
  const std::int64_t y_height = grad_y.size(2), y_width = grad_y.size(3);
  const std::int64_t rows = options.kernel[0], columns = options.kernel[1], row_elements = width * channels;
  const T* const gradient = grad_y.data<T>();
  const std::uint8_t* const winner = indices.data<std::uint8_t>();
  T* const out = grad_x.data<T>();
  const auto grain = rows_per_part(rows * row_elements);
  parallel_for(grad_y.size(0) * y_height, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t n = row / y_height, i = row % y_height;
      T* const band = out + (n * height + i * rows) * row_elements;
      for (std::int64_t j = 0; j < y_width; ++j) {
        const std::int64_t from = (row * y_width + j) * channels;
        for_each_vector(channels, [&](Channels part) {
          const Vec value = part.load(gradient + from);
          const IntVec won = load_bytes(part, winner + from);
          std::int32_t position = 0;
          for (std::int64_t h = 0; h < rows; ++h)
            for (std::int64_t w = 0; w < columns; ++w, ++position)
              part.store(band + h * row_elements + (j * columns + w) * channels, won == position ? value : Vec{});
        });
      }
      const std::int64_t covered = y_width * columns * channels;
      for (std::int64_t h = 0; h < rows; ++h)
        std::fill_n(band + h * row_elements + covered, row_elements - covered, T{});
      if (i + 1 == y_height) std::fill_n(band + rows * row_elements, (height - y_height * rows) * row_elements, T{});
    }
  });
}

/// Backward for windows that overlap or leave gaps: each pixel gathers from the windows that cover it.
template <typename T>
void collect(const Tensor& grad_y, const Tensor& indices, const Pool2dOptions& options, const Out& grad_x) {
  const std::int64_t channels = grad_x.size(1), height = grad_x.size(2), width = grad_x.size(3);
  const std::int64_t y_height = grad_y.size(2), y_width = grad_y.size(3);
  const T* const gradient = grad_y.data<T>();
  const std::uint8_t* const winner = indices.data<std::uint8_t>();
  T* const out = grad_x.data<T>();
  std::vector<PoolRange> covering_columns;
  for (std::int64_t w = 0; w < width; ++w) covering_columns.push_back(covering_outputs(w, 1, y_width, options));
  // Each row of grad_x gathers from the windows that cover it: no two threads write one element.
  parallel_for(grad_x.size(0) * height, rows_per_part(width * channels), [&](std::int64_t begin, std::int64_t end) {
    std::vector<CoveringWindow<T>> windows;
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

}  // namespace

bool supports_max_pool2d(const Tensor& x, const Tensor& y, const Tensor& indices) {
  return computes_in_float(x.dtype()) && x.is_dense(Layout::channels_last) && y.is_dense(Layout::channels_last) &&
         (!indices.defined() || (indices.dtype() == DType::u8 && indices.is_dense(Layout::channels_last)));
}

void max_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Out& y, const Out& indices) {
  dispatch_float(x.dtype(), "max_pool2d", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (indices.defined()) return forward<T, true>(x, options, y, indices);
    forward<T, false>(x, options, y, indices);
  });
}

void max_pool2d_backward(const Tensor& grad_y, const Tensor& indices, const Pool2dOptions& options, const Out& grad_x) {
  dispatch_float(grad_x.dtype(), "max_pool2d_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (windows_side_by_side(options)) return spread<T>(grad_y, indices, options, grad_x);
    collect<T>(grad_y, indices, options, grad_x);
  });
}

}  // namespace tandem::kernels::cpu
