// Preparation and upload of what the augmenting kernel gets for each image.
#include "tandem/core/out.h"
#include "tandem/kernels/augment/image_task.h"

#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

namespace tandem::kernels::cuda {

namespace {

ImageTask make_task(std::int64_t index, const ImageAugment& augment) {
  const double angle = static_cast<double>(augment.degrees) * std::numbers::pi / 180.0;
  return {.index = index,
          .shift_y = augment.shift_y,
          .shift_x = augment.shift_x,
          .cutout = augment.cutout,
          .cosine = static_cast<float>(std::cos(angle)),
          .sine = static_cast<float>(std::sin(angle)),
          .brightness = augment.brightness,
          .contrast = augment.contrast,
          .saturation = augment.saturation,
          .offset = augment.offset,
          .gain = augment.gain,
          .color_order = {augment.color_order[0], augment.color_order[1], augment.color_order[2]},
          .flip = augment.flip,
          .rotates = augment.degrees != 0.0F,
          .changes_color = augment.changes_color()};
}

}  // namespace

Tensor upload_tasks(std::span<const std::int64_t> indices, std::span<const ImageAugment> augments,
                    const AugmentImagesOptions& options, Device device) {
  const MemoryTagScope scope(MemoryTag::workspace);
  const std::size_t task_bytes = indices.size() * sizeof(ImageTask);
  const std::size_t bytes = task_bytes + options.mean.size() * sizeof(ChannelAffine);
  const Shape shape{static_cast<std::int64_t>(bytes)};
  // First: it sets this thread's device.
  const Tensor memory = Tensor::empty(shape, {.dtype = DType::u8, .device = device});
  const Tensor pinned = Tensor::empty(shape, {.dtype = DType::u8, .pinned = true});
  auto* const start = Out(pinned).data<std::uint8_t>();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const ImageTask task = make_task(indices[i], augments.empty() ? ImageAugment{} : augments[i]);
    std::memcpy(start + i * sizeof task, &task, sizeof task);
  }
  for (std::size_t c = 0; c < options.mean.size(); ++c) {
    const float deviation = options.deviation[c];
    const ChannelAffine affine{1.0F / deviation, 1.0F / 255.0F / deviation, -options.mean[c] / deviation};
    std::memcpy(start + task_bytes + c * sizeof affine, &affine, sizeof affine);
  }
  memory.copy_from_async(pinned);
  return memory;
}

}  // namespace tandem::kernels::cuda
