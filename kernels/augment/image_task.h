// What the augmenting kernel gets for each image, and its upload.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/augment/augment_images.h"

namespace tandem::kernels::cuda {

/// ImageAugment, ready for use. PixelBox as it is.
struct ImageTask {
  std::int64_t index;  // in the source
  int shift_y, shift_x;
  PixelBox cutout;
  float cosine, sine;
  float brightness, contrast, saturation;
  float offset, gain;
  std::uint8_t color_order[3];
  bool flip, rotates, changes_color;
};

/// Normalisation of a channel: value * scale + bias, `scale` for values in [0, 1] or for bytes.
struct ChannelAffine {
  float unit_scale, byte_scale, bias;
};

/// The tasks and behind them the affines, on a device, in one copy that nobody waits for.
Tensor upload_tasks(std::span<const std::int64_t> indices, std::span<const ImageAugment> augments,
                    const AugmentImagesOptions& options, Device device);

}  // namespace tandem::kernels::cuda
