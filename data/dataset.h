// A labelled set of images, in memory as bytes.
#pragma once

#include "tandem/core/tensor.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::data {

enum class Split : std::uint8_t { train, test };

constexpr std::string_view name_of(Split split) { return split == Split::train ? "train" : "test"; }

/// Images as they are stored in files: one byte per value, planes of rows. Memory is tagged MemoryTag::data.
/// Example:
///     const Dataset shapes{.name = "shapes",
///                          .images = Tensor::zeros({4, 1, 28, 28}, {.dtype = DType::u8}),
///                          .labels = Tensor::from<std::int64_t>({0, 1, 1, 0}, {4}),
///                          .class_names = {"disc", "square"},
///                          .mean = {0.5f},
///                          .deviation = {0.25f}};
///     check(shapes);
struct Dataset {
  std::string name;                      ///< "cifar10"
  Tensor images;                         ///< u8 [N,C,H,W], row-major
  Tensor labels;                         ///< i64 [N], in [0, classes)
  std::vector<std::string> class_names;  ///< one per class
  std::vector<float> mean, deviation;    ///< per channel, of value / 255 over the training set

  std::int64_t size() const { return images.size(0); }
  std::int64_t channels() const { return images.size(1); }
  std::int64_t height() const { return images.size(2); }
  std::int64_t width() const { return images.size(3); }
  std::int64_t classes() const { return static_cast<std::int64_t>(class_names.size()); }
};

/// Throws Error unless shapes and dtypes are as above, every label is in range, and mean and deviation fit the
/// channels.
void check(const Dataset& dataset);

}  // namespace tandem::data
