// From stored bytes to network input: gathers u8 images, augments them and writes normalised channels_last floats.
#pragma once

#include "tandem/core/out.h"

#include <array>
#include <cstdint>
#include <span>

namespace tandem::kernels {

/// What a shifted image shows beyond its border: black, or the image mirrored without repeating the edge pixel.
enum class BorderMode : std::uint8_t { zero, reflect };

/// A box of pixels, rows [top, bottom) and columns [left, right); empty where bottom <= top or right <= left.
struct PixelBox {
  int top = 0, left = 0, bottom = 0, right = 0;

  bool empty() const { return bottom <= top || right <= left; }
};

/// What is done to one image, in the order of the members. The defaults do nothing. A random crop of a padded image is
/// a shift by an integer number of pixels, so it is written as one.
struct ImageAugment {
  int shift_y = 0, shift_x = 0;  ///< pixel (y, x) shows (y + shift_y, x + shift_x)
  bool flip = false;             ///< left and right exchanged
  /// Rotation about the image's centre, counter-clockwise, bilinear, black outside (torchvision's `rotate`).
  float degrees = 0.0F;
  /// Torchvision's adjust_* on values in [0, 1]: blend(a, b, f) = clamp(f a + (1 - f) b, 0, 1) with b = black, the mean
  /// grey of the image, the grey of the pixel. Grey is 0.2989 R + 0.587 G + 0.114 B. Images without 3 channels: grey is
  /// the mean of their channels, and saturation changes nothing.
  float brightness = 1.0F, contrast = 1.0F, saturation = 1.0F;
  /// Which of these three comes first, second and third: 0 brightness, 1 contrast, 2 saturation.
  std::array<std::uint8_t, 3> color_order{0, 1, 2};
  float offset = 0.0F, gain = 1.0F;  ///< a value v, normalised, becomes (v + offset) * gain, without a clamp
  PixelBox cutout =
      {};  ///< set to 0 after all of this, that is to the mean colour (DeVries & Taylor, arXiv 1708.04552)

  bool changes_color() const { return brightness != 1.0F || contrast != 1.0F || saturation != 1.0F; }
  bool changes_values() const { return offset != 0.0F || gain != 1.0F; }
};

/// out = (u8 / 255 - mean) / deviation, per channel.
struct AugmentImagesOptions {
  std::span<const float> mean = {};
  std::span<const float> deviation = {};
  BorderMode border = BorderMode::zero;
};

/// out[i] = augment(source[indices[i]], augments[i]), normalised.
/// source: u8 [M,C,H,W], row-major dense. indices: n numbers in [0, M). augments: n, or empty for none.
/// out: floating [n,C,H,W]. mean, deviation: C each, deviation > 0. With BorderMode::reflect |shift| must stay below H,
/// W. `source` and `out` on one device; the rest is read before this returns. Throws Error on any mismatch. On the CPU
/// it runs in the calling thread alone, so that a loader's thread does not compete with training for cores; f32, f16
/// and bf16 channels_last output is vectorised there, everything else goes to the reference. Vectorised, it gives the
/// same bits as on a CUDA device.
void augment_images(const Tensor& source, std::span<const std::int64_t> indices, std::span<const ImageAugment> augments,
                    const AugmentImagesOptions& options, const Out& out);

/// What augment_images() does to which images, in the memory of the GPU that has them: the first half of it.
struct PlannedImages {
  Tensor memory;           // u8, of kernels
  std::int64_t count = 0;  // n
  BorderMode border = BorderMode::zero;
};

/// Checks what augment_images() checks, and takes to the GPU of `source` what is to be done there: a copy on its
/// current stream, for which nobody waits. Throws Error for images on the CPU.
PlannedImages plan_images(const Tensor& source, std::span<const std::int64_t> indices,
                          std::span<const ImageAugment> augments, const AugmentImagesOptions& options);

/// The second half: what augment_images() makes of the images of the plan, by a kernel on the current stream, which
/// waits for the plan's stream before. `source` is the plan's, `out` as there.
void make_images(const Tensor& source, const PlannedImages& plan, const Out& out);

}  // namespace tandem::kernels
