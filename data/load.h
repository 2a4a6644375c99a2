// Data sets by name.
#pragma once

#include "tandem/data/image_dataset.h"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace tandem::data {

/// What load_dataset() is asked for.
struct DatasetRequest {
  std::string name = {};                 ///< one of dataset_names()
  std::filesystem::path directory = {};  ///< empty: the first of default_directories(name) that exists
  Split split = Split::train;            ///< which of its parts
  /// The first `limit` images, or all of them where there are fewer or `limit` is 0. Synthetic images can be drawn in
  /// any number: exactly `limit`, or 10,000 for training and 2,000 for testing where it is 0.
  std::int64_t limit = 0;
  std::uint64_t seed = 0;  ///< synthetic only
};

/// cifar10, cifar100, mnist, fashion-mnist, synthetic.
std::span<const std::string_view> dataset_names();

/// Reads or draws a data set. Throws Error on an unknown name (naming the nearest), where there is no folder of it, for
/// a limit below 0, and on everything that the readers throw on. Example:
///     const ImageDataset images = load_dataset({.name = "synthetic", .split = Split::test, .limit = 100});
///     const std::int64_t classes = images.classes();  // 10
ImageDataset load_dataset(const DatasetRequest& request);

}  // namespace tandem::data
