// ImageDataset: labelled images, in memory as bytes.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/data/augment.h"
#include "tandem/data/batch_source.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::data {

/// Which part of a data set: what is learned, or what is only looked at.
enum class Split : std::uint8_t { train, test };

/// "train" or "test".
constexpr std::string_view name_of(Split split) { return split == Split::train ? "train" : "test"; }

/// Images as they are stored in files: one byte per value, planes of rows. Memory is tagged MemoryTag::data. An example
/// is an image f32 [C,H,W], normalised, and its label i64 []. Batches are images [n,C,H,W], augmented and normalised in
/// one pass, and labels i64 [n]. Example:
///     ImageDataset shapes;
///     shapes.name = "shapes";
///     shapes.images = Tensor::zeros({4, 1, 28, 28}, {.dtype = DType::u8});
///     shapes.labels = Tensor::from<std::int64_t>({0, 1, 1, 0}, {4});
///     shapes.class_names = {"disc", "square"};
///     shapes.mean = {0.5f};
///     shapes.deviation = {0.25f};
///     check(shapes);
///     const Tensor image = shapes.get(2)[0];  // [1, 28, 28]
class ImageDataset final : public BatchSource {
 public:
  std::string name;                      ///< "cifar10"
  Tensor images;                         ///< u8 [N,C,H,W], row-major, on the CPU; those of resident_on() are elsewhere
  Tensor labels;                         ///< i64 [N], in [0, classes), on the CPU
  std::vector<std::string> class_names;  ///< one per class
  std::vector<float> mean, deviation;    ///< per channel, of value / 255 over the training set

  /// Images, their channels, height and width in pixels, and classes.
  /// @{
  std::int64_t size() const override { return images.size(0); }
  std::int64_t channels() const { return images.size(1); }
  std::int64_t height() const { return images.size(2); }
  std::int64_t width() const { return images.size(3); }
  std::int64_t classes() const { return static_cast<std::int64_t>(class_names.size()); }
  /// @}

  /// Throws Error as check() does, and for a reflecting crop as wide or as high as the images, or more.
  void check_options(const BatchOptions& options) const override;
  /// The images and labels of these numbers, augmented as the options say: see Dataset.
  std::vector<Tensor> get_batch(std::span<const std::int64_t> indices, std::uint32_t epoch,
                                const BatchOptions& options) const override;

  /// Of images on a GPU.
  std::optional<ImagesToMake> defer_batch(std::span<const std::int64_t> indices, std::uint32_t epoch,
                                          const BatchOptions& options, std::vector<Tensor>& rest) const override;

  /// The images go to `device`, the labels stay.
  std::shared_ptr<const BatchSource> resident_on(Device device) const override;
};

/// Throws Error unless shapes, dtypes and device are as above, every label is in range, and mean and deviation fit the
/// channels.
void check(const ImageDataset& dataset);

}  // namespace tandem::data
