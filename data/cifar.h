// CIFAR-10 and CIFAR-100 in their binary version (Krizhevsky, https://www.cs.toronto.edu/~kriz/cifar.html).
#pragma once

#include "tandem/data/image_dataset.h"

#include <filesystem>
#include <span>
#include <string>

namespace tandem::data {

/// How the binary files are laid out: records of `label_bytes` labels, of which the last one counts, then 3 x 32 x 32
/// bytes: planes red, green, blue, each row by row.
struct CifarFormat {
  std::int64_t label_bytes = 1;           ///< bytes in front of each image
  std::int64_t classes = 10;              ///< how many there are
  std::int64_t records_per_file = 10000;  ///< images in each file
  std::string advice = {};                ///< what an error tells to do
};

/// The records of `files`, one after another, without names of classes and without mean and deviation. Every file must
/// exist and hold exactly records_per_file records; at most `limit` records (0 = all) are read.
/// Throws Error naming file, offset, record and value on missing, truncated or oversized files and on labels out of
/// range.
ImageDataset read_cifar_files(std::span<const std::filesystem::path> files, const CifarFormat& format,
                              std::int64_t limit);

/// CIFAR-10: data_batch_1.bin to data_batch_5.bin or test_batch.bin, in `directory` or directory/cifar-10-batches-bin.
/// Example:
///     const ImageDataset images = load_cifar10("datasets/cifar10", Split::test);
///     const Tensor labels = images.labels;  // [10000]
ImageDataset load_cifar10(const std::filesystem::path& directory, Split split, std::int64_t limit = 0);

/// CIFAR-100 with its 100 fine labels: train.bin or test.bin, in `directory` or directory/cifar-100-binary.
ImageDataset load_cifar100(const std::filesystem::path& directory, Split split, std::int64_t limit = 0);

}  // namespace tandem::data
