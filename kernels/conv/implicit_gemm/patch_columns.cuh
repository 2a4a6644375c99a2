// Patches of x as the right operand of the weights' gradient: a column is a tap and, within taps, an input channel;
// depth is output pixels. Neighbouring channels are neighbouring columns, as they lie in memory.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/odometer.h"
#include "tandem/kernels/conv/implicit_gemm/patch_axis.h"
#include "tandem/kernels/conv/implicit_gemm/shared_tile.cuh"

namespace tandem::kernels::cuda::implicit_gemm {

template <typename T>
struct PatchColumns {
  static constexpr bool kAlongDepth = false;

  const T* images;
  PatchAxis down, across;
  int channels, image_count;
  Odometer of_column;  // channel, tap across, tap down
  Odometer of_pixel;   // column, row, image of the output

  PatchColumns(const T* data, const PatchAxis& vertical, const PatchAxis& horizontal, std::int64_t channel_count,
               std::int64_t number_of_images)
      : images(data),
        down(vertical),
        across(horizontal),
        channels(static_cast<int>(channel_count)),
        image_count(static_cast<int>(number_of_images)),
        of_column(channel_count, horizontal.taps, kVectorSize<T>),
        of_pixel(horizontal.outputs, vertical.outputs, kStepDepth<T>) {}

  template <int kSize, int kThreads>
  class Loader {
    using Share = CopyShare<T, kSize, false, kThreads>;

   public:
    __device__ Loader(const PatchColumns& operand, int first_column, int first_pixel) : operand_(operand) {
      const Digits column = operand.of_column.digits(first_column + Share::vector() * kVectorSize<T>);
      top_ = column.outer * operand.down.step + operand.down.first;
      left_ = column.middle * operand.across.step + operand.across.first;
      channel_ = column.inner;
      is_column_ = column.outer < operand.down.taps;
#pragma unroll
      for (int i = 0; i < Share::kTurns; ++i)
        pixels_[i] = operand.of_pixel.digits(first_pixel + Share::line() + i * Share::kLinesAtOnce);
    }

    __device__ void copy(T* tile) {
#pragma unroll
      for (int i = 0; i < Share::kTurns; ++i) {
        const int line = pixels_[i].middle * operand_.down.stride + top_;
        const int column = pixels_[i].inner * operand_.across.stride + left_;
        const bool inside = is_column_ && pixels_[i].outer < operand_.image_count && operand_.down.holds(line) &&
                            operand_.across.holds(column);
        const T* const from = inside ? operand_.images + offset(pixels_[i].outer, line, column) : operand_.images;
        device::cp_async<16>(tile + Share::place(i), from, inside ? 16 : 0);
        operand_.of_pixel.advance(pixels_[i]);
      }
    }

   private:
    __device__ int offset(int image, int line, int column) const {
      return ((image * operand_.down.inputs + line) * operand_.across.inputs + column) * operand_.channels + channel_;
    }

    const PatchColumns& operand_;
    Digits pixels_[Share::kTurns];
    int top_, left_, channel_;
    bool is_column_;
  };
};

}  // namespace tandem::kernels::cuda::implicit_gemm
