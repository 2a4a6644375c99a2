// The input's gradient as matrix products without a wasted multiplication: with stride s, an input row meets only every
// s-th tap of the kernel, and all rows with the same remainder of a division by s meet the same ones. Such a set of
// rows and columns is a phase; within it, strides are 1, and one product makes its gradient.
#pragma once

#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/conv/tile/patches.cuh"
#include "tandem/kernels/device/divisor.h"
#include "tandem/kernels/device/vector.h"
#include "tandem/kernels/gemm/matrix.cuh"

#include <numeric>

namespace tandem::kernels::cuda::tile {

/// One axis of a phase: its inputs are first, first + step, ...; input number i and tap number t, which is tap
/// first_tap + t * tap_step of the kernel, meet in output i + offset - t * dilation.
struct PhaseAxis {
  int first, step, inputs;
  int first_tap, tap_step, taps;  // 0 taps: no output depends on these inputs
  int offset, dilation, outputs;

  PhaseAxis(std::int64_t phase, std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
            std::int64_t kernel_dilation, std::int64_t output_count) {
    const std::int64_t skipped = stride / std::gcd(stride, kernel_dilation);
    std::int64_t tap = 0;  // the first that lands on an output
    while (tap < skipped && (phase + pad - tap * kernel_dilation) % stride != 0) ++tap;
    first = static_cast<int>(phase);
    step = static_cast<int>(stride);
    inputs = static_cast<int>((size - phase + stride - 1) / stride);
    first_tap = static_cast<int>(tap);
    tap_step = static_cast<int>(skipped);
    taps = tap < skipped && tap < kernel ? static_cast<int>((kernel - tap + skipped - 1) / skipped) : 0;
    offset = static_cast<int>((phase + pad - tap * kernel_dilation) / stride);
    dilation = static_cast<int>(skipped * kernel_dilation / stride);
    outputs = static_cast<int>(output_count);
  }
};

/// Rows and columns of a phase, and what its indices are divided by.
struct InputPhase {
  PhaseAxis rows, columns;
  int height, width, channels, kernel_taps, kernel_columns;  // of the input and the kernel
  device::Divisor by_rows, by_columns, by_channels, by_tap_columns;

  InputPhase(const ConvGeometry& g, std::int64_t row, std::int64_t column)
      : rows(row, g.h, g.r, g.stride_h, g.pad_h, g.dilation_h, g.p),
        columns(column, g.w, g.s, g.stride_w, g.pad_w, g.dilation_w, g.q),
        height(static_cast<int>(g.h)),
        width(static_cast<int>(g.w)),
        channels(static_cast<int>(g.c)),
        kernel_taps(static_cast<int>(g.r * g.s)),
        kernel_columns(static_cast<int>(g.s)),
        by_rows(rows.inputs),
        by_columns(columns.inputs),
        by_channels(g.k),
        by_tap_columns(std::max(columns.taps, 1)) {}

  std::int64_t taps() const { return std::int64_t{rows.taps} * columns.taps; }
  std::int64_t pixels(std::int64_t images) const { return images * rows.inputs * columns.inputs; }

  /// The number, in the whole input, of this phase's pixel number `row`.
  __device__ std::int64_t pixel(std::int64_t row) const {
    const Pixel in(row, by_rows, by_columns);
    const std::int64_t line = std::int64_t{in.image} * height + rows.first + in.row * rows.step;
    return line * width + columns.first + in.column * columns.step;
  }
};

/// Rows: a phase's input pixels. Depth: its taps and the output channels of the gradient, where its gate is open.
template <typename T>
struct GradientPatches {
  const T* grad_y;
  Gate<T> gate;
  InputPhase phase;
  std::int64_t pixels;
  std::int64_t output_channels;

  struct Row {
    std::int64_t image;  // first pixel of the gradient
    int bottom, right;   // the output that tap 0 meets
    bool inside;
  };
  static __device__ constexpr bool along_depth() { return true; }

  __device__ Row row(std::int64_t row) const {
    if (row >= pixels) return {0, 0, 0, false};
    const Pixel in(row, phase.by_rows, phase.by_columns);
    return {std::int64_t{in.image} * phase.rows.outputs * phase.columns.outputs, in.row + phase.rows.offset,
            in.column + phase.columns.offset, true};
  }

  template <int N>
  __device__ device::Vector<float, N> load(const Row& row, std::int64_t depth, std::int64_t depth_end) const {
    if (!row.inside || depth >= depth_end) return {};
    const Tap tap(depth, phase.by_channels, phase.by_tap_columns);
    const int p = row.bottom - tap.r * phase.rows.dilation, q = row.right - tap.s * phase.columns.dilation;
    if (p < 0 || p >= phase.rows.outputs || q < 0 || q >= phase.columns.outputs) return {};
    const std::int64_t at = (row.image + p * phase.columns.outputs + q) * output_channels + tap.channel;
    device::Vector<float, N> values = load_floats<N>(grad_y + at);
    gate.template apply<N>(values, at);
    return values;
  }
};

/// The weights of a phase's taps. Rows: input channels. Depth: taps and output channels.
template <typename T>
struct TransposedWeights {
  const T* w;
  InputPhase phase;

  struct Row {
    int channel;
    bool inside;
  };
  static __device__ constexpr bool along_depth() { return false; }

  __device__ Row row(std::int64_t row) const { return {static_cast<int>(row), row < phase.channels}; }

  template <int N>
  __device__ device::Vector<float, N> load(const Row& row, std::int64_t depth, std::int64_t depth_end) const {
    if (!row.inside || depth >= depth_end) return {};
    const Tap tap(depth, phase.by_channels, phase.by_tap_columns);
    const int r = phase.rows.first_tap + tap.r * phase.rows.tap_step;
    const int s = phase.columns.first_tap + tap.s * phase.columns.tap_step;
    const std::int64_t at = std::int64_t{tap.channel} * phase.kernel_taps + r * phase.kernel_columns + s;
    return load_floats<N>(w + at * phase.channels + row.channel);
  }
};

/// The gradient of a phase's pixels, stored where they are in the image.
template <typename T>
struct PhaseResult : MatrixResult<T> {
  InputPhase phase;

  template <int kCount>
  __device__ void store(std::int64_t row, std::int64_t column, const device::Vector<float, kCount>& sums) const {
    if (this->parts != nullptr) return MatrixResult<T>::store(row, column, sums);
    if (!this->holds(row, column)) return;
    const std::int64_t pixel = phase.pixel(row);
    device::store_vector(this->data + pixel * this->row_stride + column, this->finished(pixel, column, sums));
  }
};

}  // namespace tandem::kernels::cuda::tile
