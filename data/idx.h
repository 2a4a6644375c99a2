// MNIST and Fashion-MNIST: pairs of IDX files, plain or .gz (format: http://yann.lecun.com/exdb/mnist/).
#pragma once

#include "tandem/data/image_dataset.h"

#include <filesystem>
#include <string>

namespace tandem::data {

/// IDX files of bytes: magic 0x00000803 and three sizes (images), or 0x00000801 and one size (labels), big-endian.
/// The result has one channel, and no names of classes, mean or deviation. At most `limit` images (0 = all) are read.
/// Throws Error naming file, offset and what was expected on missing, damaged, truncated or oversized files, wrong
/// magic, sizes that do not fit the file or each other, and labels of `classes` or more. `advice` ends the message.
ImageDataset read_idx_files(const std::filesystem::path& images, const std::filesystem::path& labels,
                            std::int64_t classes, const std::string& advice, std::int64_t limit);

/// train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-... (also with a dot before idx, also .gz), in `directory`,
/// or in its raw/ or MNIST/raw/ (torchvision's folders).
/// Example:
///     const ImageDataset images = load_mnist("datasets/mnist", Split::train);
///     const Tensor pixels = images.images;  // [60000, 1, 28, 28]
ImageDataset load_mnist(const std::filesystem::path& directory, Split split, std::int64_t limit = 0);

/// The same files; in `directory`, raw/ or FashionMNIST/raw/.
ImageDataset load_fashion_mnist(const std::filesystem::path& directory, Split split, std::int64_t limit = 0);

}  // namespace tandem::data
