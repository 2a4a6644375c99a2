// Checks of augment_images, and the choice of its implementation.
#include "tandem/kernels/augment/augment_images.h"
#include "tandem/core/timeline.h"
#include "tandem/kernels/augment/augment_images_implementations.h"
#include "tandem/kernels/cuda_choice.h"

#include <algorithm>
#include <cstdlib>

namespace tandem::kernels {

namespace {

void check_augment(const ImageAugment& augment, std::size_t position, const Shape& shape, BorderMode border) {
  if (border == BorderMode::reflect) {
    require(std::abs(augment.shift_y) < shape[2] && std::abs(augment.shift_x) < shape[3],
            "augment_images: shift ({}, {}) of image {} needs a larger image than {} x {} to reflect; pad less",
            augment.shift_y, augment.shift_x, position, shape[2], shape[3]);
  }
  auto order = augment.color_order;
  std::sort(order.begin(), order.end());
  require(order == std::array<std::uint8_t, 3>{0, 1, 2},
          "augment_images: color_order of image {} must hold 0, 1 and 2 once each", position);
}

void check_source(const Tensor& source) {
  require(source.rank() == 4 && source.dtype() == DType::u8 && source.is_dense(Layout::row_major),
          "augment_images: source must be u8 [M,C,H,W], row-major dense, got {}", describe(source));
}

void check_out(const Tensor& source, std::int64_t count, const Out& out) {
  const Shape& shape = source.shape();
  require(out.rank() == 4 && is_floating(out.dtype()) && out.shape() == Shape({count, shape[1], shape[2], shape[3]}),
          "augment_images: out must be floating [{}, {}, {}, {}], got {}", count, shape[1], shape[2], shape[3],
          describe(out));
  require_one_device("augment_images", out, source);
}

/// What is to be done to which images.
void check_plan(const Tensor& source, std::span<const std::int64_t> indices, std::span<const ImageAugment> augments,
                const AugmentImagesOptions& options) {
  const Shape& shape = source.shape();
  require(augments.empty() || augments.size() == indices.size(),
          "augment_images: {} augmentations for {} images; give one each or none", augments.size(), indices.size());
  const auto channels = static_cast<std::size_t>(shape[1]);
  require(options.mean.size() == channels && options.deviation.size() == channels,
          "augment_images: {} means and {} deviations for {} channels", options.mean.size(), options.deviation.size(),
          channels);
  require(std::all_of(options.deviation.begin(), options.deviation.end(), [](float d) { return d > 0.0F; }),
          "augment_images: every deviation must be greater than 0");
  for (const std::int64_t index : indices) {
    require(index >= 0 && index < shape[0], "augment_images: image {} asked for, the source has {}", index, shape[0]);
  }
  for (std::size_t i = 0; i < augments.size(); ++i) check_augment(augments[i], i, shape, options.border);
}

/// Of each image its bytes are read and its elements written.
void note_images(const Out& out) {
  if (timeline_is_recorded()) add_work(0.0, static_cast<double>(out.numel() * (1 + size_of(out.dtype()))));
}

}  // namespace

void augment_images(const Tensor& source, std::span<const std::int64_t> indices, std::span<const ImageAugment> augments,
                    const AugmentImagesOptions& options, const Out& out) {
  check_source(source);
  check_out(source, static_cast<std::int64_t>(indices.size()), out);
  check_plan(source, indices, augments, options);
  if (out.numel() == 0) return;
  note_images(out);
  if constexpr (kHasCuda)
    if (const CudaOp op{"augment_images", out}) return cuda::augment_images(source, indices, augments, options, out);
  if (cpu::augment_images_supports(out)) {
    cpu::augment_images(source, indices, augments, options, out);
  } else {
    reference::augment_images(source, indices, augments, options, out);
  }
}

PlannedImages plan_images(const Tensor& source, std::span<const std::int64_t> indices,
                          std::span<const ImageAugment> augments, const AugmentImagesOptions& options) {
  check_source(source);
  check_plan(source, indices, augments, options);
  if constexpr (kHasCuda)
    if (const CudaOp op{"plan_images", source}) return cuda::plan_images(source, indices, augments, options);
  fail("plan_images: the images are on the {}, and only a GPU makes them later", name_of(source.device()));
}

void make_images(const Tensor& source, const PlannedImages& plan, const Out& out) {
  check_source(source);
  check_out(source, plan.count, out);
  require(plan.memory.defined() && plan.memory.device() == source.device(), "make_images: the plan is of other images");
  if (out.numel() == 0) return;
  note_images(out);
  if constexpr (kHasCuda)
    if (const CudaOp op{"augment_images", out}) return cuda::make_images(source, plan, out);
}

}  // namespace tandem::kernels
