// Checks and batches of images in memory.
#include "tandem/data/image_dataset.h"

#include "tandem/core/out.h"

#include <algorithm>
#include <cmath>

namespace tandem::data {

void check(const ImageDataset& dataset) {
  require(dataset.images.defined() && dataset.images.rank() == 4 && dataset.images.dtype() == DType::u8 &&
              dataset.images.is_dense(Layout::row_major),
          "dataset '{}': images must be u8 [N,C,H,W], row-major dense, got {}", dataset.name,
          dataset.images.defined() ? describe(dataset.images) : "none");
  require(dataset.labels.defined() && dataset.labels.dtype() == DType::i64 &&
              dataset.labels.shape() == Shape({dataset.size()}) && dataset.labels.is_dense(Layout::row_major),
          "dataset '{}': labels must be i64 [{}], got {}", dataset.name, dataset.size(),
          dataset.labels.defined() ? describe(dataset.labels) : "none");
  require(
      dataset.images.device() == Device{} && dataset.labels.device() == Device{},
      "dataset '{}': images and labels must be on the CPU, got {} and {}; LoaderOptions::resident takes images to a "
      "GPU",
      dataset.name, name_of(dataset.images.device()), name_of(dataset.labels.device()));
  const auto channels = static_cast<std::size_t>(dataset.channels());
  require(dataset.mean.size() == channels && dataset.deviation.size() == channels,
          "dataset '{}': {} means and {} deviations for {} channels; give one for each", dataset.name,
          dataset.mean.size(), dataset.deviation.size(), channels);
  for (const float deviation : dataset.deviation)
    require(deviation > 0.0F && std::isfinite(deviation), "dataset '{}': deviation {} must be above 0", dataset.name,
            deviation);
  if (dataset.size() == 0) return;
  const auto* labels = dataset.labels.data<std::int64_t>();
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    require(labels[i] >= 0 && labels[i] < dataset.classes(), "dataset '{}': image {} has label {}, expected 0 to {}",
            dataset.name, i, labels[i], dataset.classes() - 1);
  }
}

void ImageDataset::check_options(const BatchOptions& options) const {
  check(*this);
  check_size(options.augment, height(), width(), fmt::format("data set '{}' has", name));
}

namespace {

Tensor labels_of(const ImageDataset& dataset, std::span<const std::int64_t> indices, bool pinned) {
  const Tensor labels =
      Tensor::empty({static_cast<std::int64_t>(indices.size())}, {.dtype = DType::i64, .pinned = pinned});
  const auto* all_labels = dataset.labels.data<std::int64_t>();
  std::transform(indices.begin(), indices.end(), Out(labels).data<std::int64_t>(),
                 [all_labels](std::int64_t image) { return all_labels[image]; });
  return labels;
}

}  // namespace

/// Runs in a background thread: nothing here may start a team of threads, which would compete with training.
std::vector<Tensor> ImageDataset::get_batch(std::span<const std::int64_t> indices, std::uint32_t epoch,
                                            const BatchOptions& options) const {
  const MemoryTagScope tag(MemoryTag::data);
  const auto count = static_cast<std::int64_t>(indices.size());
  const Device device = images.device();
  const Tensor batch =
      Tensor::empty({count, channels(), height(), width()}, {.dtype = options.dtype,
                                                             .layout = Layout::channels_last,
                                                             .device = device,
                                                             .pinned = options.pinned && device == Device{}});
  if (count > 0) {
    kernels::augment_images(images, indices,
                            draw_augments(options.augment, options.seed, epoch, indices, height(), width()),
                            {mean, deviation, options.augment.crop_border}, Out(batch));
  }
  return {batch, labels_of(*this, indices, options.pinned)};
}

std::optional<ImagesToMake> ImageDataset::defer_batch(std::span<const std::int64_t> indices, std::uint32_t epoch,
                                                      const BatchOptions& options, std::vector<Tensor>& rest) const {
  if (images.device() == Device{} || indices.empty()) return std::nullopt;
  const MemoryTagScope tag(MemoryTag::data);
  const kernels::PlannedImages plan = kernels::plan_images(
      images, indices, draw_augments(options.augment, options.seed, epoch, indices, height(), width()),
      {mean, deviation, options.augment.crop_border});
  rest = {Tensor(), labels_of(*this, indices, options.pinned)};
  return ImagesToMake{.shape = {plan.count, channels(), height(), width()},
                      .options = {.dtype = options.dtype, .layout = Layout::channels_last, .device = images.device()},
                      .make = [source = images, plan](const Out& made) { kernels::make_images(source, plan, made); },
                      .memory = {images, plan.memory}};
}

std::shared_ptr<const BatchSource> ImageDataset::resident_on(Device device) const {
  const MemoryTagScope tag(MemoryTag::data);
  auto there = std::make_shared<ImageDataset>(*this);
  there->images = images.to(device);
  return there;
}

}  // namespace tandem::data
