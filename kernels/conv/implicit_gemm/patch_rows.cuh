// Patches of images as the left operand: a row is an output pixel, depth runs through taps and, within them, channels.
// The matrix of patches is never written; each vector of 8 channels is copied from where it lies in the image.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/odometer.h"
#include "tandem/kernels/conv/implicit_gemm/patch_axis.h"
#include "tandem/kernels/conv/implicit_gemm/shared_tile.cuh"

#include <algorithm>

namespace tandem::kernels::cuda::implicit_gemm {

/// Channels are a multiple of 8. Rows go through the outputs of an image line by line or, where kWindow is 2, through
/// windows of 2 x 2 outputs: four neighbouring rows are one. An odd last line or column is then left out.
template <typename T, int kWindow = 1>
struct PatchRows {
  static constexpr bool kAlongDepth = true;

  const T* images;
  PatchAxis down, across;
  int channels;
  int rows;           // outputs of all images
  Odometer of_depth;  // channel, tap across, tap down
  device::Divisor by_down, by_across;

  PatchRows(const T* data, const PatchAxis& vertical, const PatchAxis& horizontal, std::int64_t channel_count,
            std::int64_t image_count)
      : images(data),
        down(vertical),
        across(horizontal),
        channels(static_cast<int>(channel_count)),
        rows(static_cast<int>(image_count * (vertical.outputs / kWindow) * (horizontal.outputs / kWindow) * kWindow *
                              kWindow)),
        of_depth(channel_count, std::max(horizontal.taps, 1), kStepDepth<T>),
        by_down(vertical.outputs / kWindow),
        by_across(horizontal.outputs / kWindow) {}

  template <int kSize, int kThreads>
  class Loader {
    using Share = CopyShare<T, kSize, true, kThreads>;

   public:
    __device__ Loader(const PatchRows& operand, int first_row, int first_depth) : operand_(operand) {
      depth_ = operand.of_depth.digits(first_depth + Share::vector() * kVectorSize<T>);
#pragma unroll
      for (int i = 0; i < Share::kTurns; ++i) {
        const int row = first_row + Share::line() + i * Share::kLinesAtOnce;
        top_[i] = kOutside;
        left_[i] = start_[i] = 0;
        if (row >= operand.rows) continue;
        const int in_window = row % (kWindow * kWindow);
        unsigned column = static_cast<unsigned>(row) / (kWindow * kWindow);
        unsigned line = operand.by_across.split(column);
        const int image = static_cast<int>(operand.by_down.split(line));
        const int output_line = static_cast<int>(line) * kWindow + in_window / kWindow;
        const int output_column = static_cast<int>(column) * kWindow + in_window % kWindow;
        top_[i] = output_line * operand.down.stride + operand.down.first;
        left_[i] = output_column * operand.across.stride + operand.across.first;
        start_[i] = ((image * operand.down.inputs + top_[i]) * operand.across.inputs + left_[i]) * operand.channels;
      }
    }

    __device__ void copy(T* tile) {
      const int down = depth_.outer * operand_.down.step, across = depth_.middle * operand_.across.step;
      const int tap = (down * operand_.across.inputs + across) * operand_.channels + depth_.inner;
      const bool is_tap = depth_.outer < operand_.down.taps;
#pragma unroll
      for (int i = 0; i < Share::kTurns; ++i) {
        const bool inside = is_tap && operand_.down.holds(top_[i] + down) && operand_.across.holds(left_[i] + across);
        device::cp_async<16>(tile + Share::place(i), inside ? operand_.images + (start_[i] + tap) : operand_.images,
                             inside ? 16 : 0);
      }
      operand_.of_depth.advance(depth_);
    }

   private:
    static constexpr int kOutside = -(1 << 30);  // no tap leads from here into an image

    const PatchRows& operand_;
    Digits depth_;
    int top_[Share::kTurns], left_[Share::kTurns];  // the pixel that tap 0 of a row meets
    int start_[Share::kTurns];                      // and its offset
  };
};

}  // namespace tandem::kernels::cuda::implicit_gemm
