// A convolution's tensors as operands of a matrix product (product_tile.cuh): patches are read where they lie, so the
// matrix of all patches ("im2col") is never written.
//
//   pass             rows            columns            depth
//   forward          output pixels   output channels    taps x input channels
//   backward_input   input pixels    input channels     taps x output channels
//   backward_weight  output channels taps x input ch.   output pixels
#pragma once

#include "kernels/conv/geometry.h"
#include "kernels/device/divisor.h"
#include "kernels/gemm/matrix.cuh"

#include <limits>

namespace tandem::kernels::cuda::tile {

/// The geometry in 32-bit numbers, with what its indices are divided by.
struct TileGeometry {
  int h, w, c, p, q, k, taps;
  int stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  device::Divisor by_h, by_w, by_c, by_p, by_q, by_k, by_s, by_stride_h, by_stride_w;

  explicit TileGeometry(const ConvGeometry& g)
      : h(int32(g.h)),
        w(int32(g.w)),
        c(int32(g.c)),
        p(int32(g.p)),
        q(int32(g.q)),
        k(int32(g.k)),
        taps(int32(g.r * g.s)),
        stride_h(int32(g.stride_h)),
        stride_w(int32(g.stride_w)),
        pad_h(int32(g.pad_h)),
        pad_w(int32(g.pad_w)),
        dilation_h(int32(g.dilation_h)),
        dilation_w(int32(g.dilation_w)),
        by_h(g.h),
        by_w(g.w),
        by_c(g.c),
        by_p(g.p),
        by_q(g.q),
        by_k(g.k),
        by_s(g.s),
        by_stride_h(g.stride_h),
        by_stride_w(g.stride_w) {}

 private:
  static int int32(std::int64_t value) { return static_cast<int>(value); }
};

/// Numbers of images, rows and columns: `pixel` counts them in memory order.
struct Pixel {
  int image, row, column;

  __device__ Pixel(std::int64_t pixel, const device::Divisor& by_rows, const device::Divisor& by_columns) {
    unsigned rest = static_cast<unsigned>(pixel);
    unsigned line = by_columns.split(rest);
    column = static_cast<int>(rest);
    image = static_cast<int>(by_rows.split(line));
    row = static_cast<int>(line);
  }
};

/// A tap of the kernel and a channel: `number` counts channels within taps.
struct Tap {
  int tap, r, s, channel;

  __device__ Tap(std::int64_t number, const device::Divisor& by_channels, const device::Divisor& by_s) {
    unsigned rest = static_cast<unsigned>(number);
    unsigned left = by_channels.split(rest);
    channel = static_cast<int>(rest);
    tap = static_cast<int>(left);
    r = static_cast<int>(by_s.split(left));
    s = static_cast<int>(left);
  }
};

/// Rows: output pixels. Depth: taps and input channels.
template <typename T>
struct Patches {
  const T* x;
  TileGeometry g;
  std::int64_t rows;

  struct Row {
    std::int64_t image;  // first pixel
    int top, left;
    bool inside;
  };
  static __device__ constexpr bool along_depth() { return true; }

  __device__ Row row(std::int64_t row) const {
    if (row >= rows) return {0, 0, 0, false};
    const Pixel out(row, g.by_p, g.by_q);
    return {std::int64_t{out.image} * g.h * g.w, out.row * g.stride_h - g.pad_h, out.column * g.stride_w - g.pad_w,
            true};
  }

  template <int N>
  __device__ device::Vector<float, N> load(const Row& row, std::int64_t depth, std::int64_t depth_end) const {
    if (!row.inside || depth >= depth_end) return {};
    const Tap tap(depth, g.by_c, g.by_s);
    const int line = row.top + tap.r * g.dilation_h, column = row.left + tap.s * g.dilation_w;
    if (line < 0 || line >= g.h || column < 0 || column >= g.w) return {};
    return load_floats<N>(x + (row.image + line * g.w + column) * g.c + tap.channel);
  }
};

/// Rows: taps and input channels. Depth: output pixels.
template <typename T>
struct PatchColumns {
  const T* x;
  TileGeometry g;
  std::int64_t rows;

  struct Row {
    int top, left, channel;
    bool inside;
  };
  static __device__ constexpr bool along_depth() { return false; }

  __device__ Row row(std::int64_t row) const {
    if (row >= rows) return {0, 0, 0, false};
    const Tap tap(row, g.by_c, g.by_s);
    return {tap.r * g.dilation_h - g.pad_h, tap.s * g.dilation_w - g.pad_w, tap.channel, true};
  }

  template <int N>
  __device__ device::Vector<float, N> load(const Row& row, std::int64_t depth, std::int64_t depth_end) const {
    if (!row.inside || depth >= depth_end) return {};
    const Pixel out(depth, g.by_p, g.by_q);
    const int line = out.row * g.stride_h + row.top, column = out.column * g.stride_w + row.left;
    if (line < 0 || line >= g.h || column < 0 || column >= g.w) return {};
    return load_floats<N>(x + ((std::int64_t{out.image} * g.h + line) * g.w + column) * g.c + row.channel);
  }
};

/// Rows: input pixels. Depth: taps and output channels of the gradient, where its gate is open.
template <typename T>
struct GradientPatches {
  const T* grad_y;
  Gate<T> gate;
  TileGeometry g;
  std::int64_t rows;

  struct Row {
    std::int64_t image;  // first pixel of the gradient
    int bottom, right;   // padding included
    bool inside;
  };
  static __device__ constexpr bool along_depth() { return true; }

  __device__ Row row(std::int64_t row) const {
    if (row >= rows) return {0, 0, 0, false};
    const Pixel in(row, g.by_h, g.by_w);
    return {std::int64_t{in.image} * g.p * g.q, in.row + g.pad_h, in.column + g.pad_w, true};
  }

  template <int N>
  __device__ device::Vector<float, N> load(const Row& row, std::int64_t depth, std::int64_t depth_end) const {
    if (!row.inside || depth >= depth_end) return {};
    const Tap tap(depth, g.by_k, g.by_s);
    const int line = row.bottom - tap.r * g.dilation_h, column = row.right - tap.s * g.dilation_w;
    if (line < 0 || column < 0) return {};
    unsigned line_rest = static_cast<unsigned>(line), column_rest = static_cast<unsigned>(column);
    const int p = static_cast<int>(g.by_stride_h.split(line_rest));
    const int q = static_cast<int>(g.by_stride_w.split(column_rest));
    if (line_rest != 0 || column_rest != 0 || p >= g.p || q >= g.q) return {};
    const std::int64_t at = (row.image + p * g.q + q) * g.k + tap.channel;
    device::Vector<float, N> values = load_floats<N>(grad_y + at);
    gate.template apply<N>(values, at);
    return values;
  }
};

/// The weights for the input's gradient. Rows: input channels. Depth: taps and output channels.
template <typename T>
struct TurnedWeights {
  const T* w;
  TileGeometry g;

  struct Row {
    int channel;
    bool inside;
  };
  static __device__ constexpr bool along_depth() { return false; }

  __device__ Row row(std::int64_t row) const { return {static_cast<int>(row), row < g.c}; }

  template <int N>
  __device__ device::Vector<float, N> load(const Row& row, std::int64_t depth, std::int64_t depth_end) const {
    if (!row.inside || depth >= depth_end) return {};
    unsigned k = static_cast<unsigned>(depth);
    const unsigned tap = g.by_k.split(k);
    return load_floats<N>(w + (std::int64_t{k} * g.taps + tap) * g.c + row.channel);
  }
};

}  // namespace tandem::kernels::cuda::tile
