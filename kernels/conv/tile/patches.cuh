// A convolution's tensors as operands of a matrix product (product_tile.cuh): patches are read where they lie, so the
// matrix of all patches ("im2col") is never written.
//
//   pass             rows            columns            depth
//   forward          output pixels   output channels    taps x input channels
//   backward_weight  output channels taps x input ch.   output pixels
//   backward_input   input pixels    input channels     taps x output channels   (input_phase.cuh)
#pragma once

#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/device/divisor.h"
#include "tandem/kernels/gemm/matrix.cuh"

#include <limits>

namespace tandem::kernels::cuda::tile {

/// The geometry in 32-bit numbers, with what its indices are divided by.
struct TileGeometry {
  int h, w, c;
  int stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  device::Divisor by_c, by_p, by_q, by_s;

  explicit TileGeometry(const ConvGeometry& g)
      : h(int32(g.h)),
        w(int32(g.w)),
        c(int32(g.c)),
        stride_h(int32(g.stride_h)),
        stride_w(int32(g.stride_w)),
        pad_h(int32(g.pad_h)),
        pad_w(int32(g.pad_w)),
        dilation_h(int32(g.dilation_h)),
        dilation_w(int32(g.dilation_w)),
        by_c(g.c),
        by_p(g.p),
        by_q(g.q),
        by_s(g.s) {}

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
    int top, left;
    int channel;  // negative past the end
  };
  static __device__ constexpr bool along_depth() { return false; }

  __device__ Row row(std::int64_t row) const {
    if (row >= rows) return {0, 0, -1};
    const Tap tap(row, g.by_c, g.by_s);
    return {tap.r * g.dilation_h - g.pad_h, tap.s * g.dilation_w - g.pad_w, tap.channel};
  }

  template <int N>
  __device__ device::Vector<float, N> load(const Row& row, std::int64_t depth, std::int64_t depth_end) const {
    if (row.channel < 0 || depth >= depth_end) return {};
    const Pixel out(depth, g.by_p, g.by_q);
    const int line = out.row * g.stride_h + row.top, column = out.column * g.stride_w + row.left;
    if (line < 0 || line >= g.h || column < 0 || column >= g.w) return {};
    return load_floats<N>(x + ((std::int64_t{out.image} * g.h + line) * g.w + column) * g.c + row.channel);
  }
};

}  // namespace tandem::kernels::cuda::tile
