// Operands whose depth is output pixels, for the gradient of the weights: the gradient of y and patches of x, both as
// they lie in memory, with neighbouring channels in neighbouring rows or columns of the product.
#pragma once

#include "kernels/conv/implicit_gemm/odometer.h"
#include "kernels/conv/implicit_gemm/shared_tile.cuh"

namespace tandem::kernels::cuda::implicit_gemm {

/// Left operand: a row is an output channel.
template <typename T>
struct GradientRows {
  static constexpr bool kAlongDepth = false;

  const T* gradient;
  int rows, pixels;

  template <int kSize, int kThreads>
  class Loader {
    using Share = CopyShare<TileLayout<kSize, false>, kThreads>;

   public:
    __device__ Loader(const GradientRows& operand, int first_row, int first_pixel)
        : operand_(operand), row_(first_row + Share::piece() * kPiece), pixel_(first_pixel + Share::line()) {}

    __device__ void copy(T* tile) {
#pragma unroll
      for (int i = 0; i < Share::kTurns; ++i) {
        const int pixel = pixel_ + i * Share::kLinesAtOnce;
        const bool inside = row_ < operand_.rows && pixel < operand_.pixels;
        device::cp_async<16>(tile + Share::place(i), operand_.gradient + (inside ? pixel * operand_.rows + row_ : 0),
                             inside ? 16 : 0);
      }
      pixel_ += kStepDepth;
    }

   private:
    const GradientRows& operand_;
    int row_, pixel_;
  };
};

/// One axis of patches: output number i and tap t meet input i * stride + t * dilation - pad.
struct PixelAxis {
  int outputs, inputs, taps;
  int stride, pad, dilation;
};

/// Right operand: a column is a tap and, within taps, an input channel.
template <typename T>
struct PatchColumns {
  static constexpr bool kAlongDepth = false;

  const T* images;
  PixelAxis down, across;
  int channels, image_count;
  Odometer of_column;  // channel, tap across, tap down
  Odometer of_pixel;   // column, row, image of the output

  PatchColumns(const T* data, const PixelAxis& vertical, const PixelAxis& horizontal, std::int64_t channel_count,
               std::int64_t number_of_images)
      : images(data),
        down(vertical),
        across(horizontal),
        channels(static_cast<int>(channel_count)),
        image_count(static_cast<int>(number_of_images)),
        of_column(channel_count, horizontal.taps, kPiece),
        of_pixel(horizontal.outputs, vertical.outputs, kStepDepth) {}

  template <int kSize, int kThreads>
  class Loader {
    using Share = CopyShare<TileLayout<kSize, false>, kThreads>;

   public:
    __device__ Loader(const PatchColumns& operand, int first_column, int first_pixel) : operand_(operand) {
      const Digits column = operand.of_column.digits(first_column + Share::piece() * kPiece);
      top_ = column.outer * operand.down.dilation - operand.down.pad;
      left_ = column.middle * operand.across.dilation - operand.across.pad;
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
        const bool inside = is_column_ && pixels_[i].outer < operand_.image_count &&
                            static_cast<unsigned>(line) < static_cast<unsigned>(operand_.down.inputs) &&
                            static_cast<unsigned>(column) < static_cast<unsigned>(operand_.across.inputs);
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
