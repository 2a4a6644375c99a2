// Holding out a part of a data set, with the same share of each class.
#pragma once

#include "tandem/data/image_dataset.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tandem::data {

/// Numbers of examples, both lists in rising order; together they are all examples, each once.
struct StratifiedSplit {
  std::vector<std::int64_t> kept, held_out;  ///< those that stay, and those that are held out
};

/// Holds out `fraction` of the examples, stratified by class: of n examples, round(fraction * n) are held out, and of
/// the n_c of a class the whole part of fraction * n_c or one more (the largest remainders get one more; of equal ones,
/// the lower class). Which examples of a class are held out is drawn from the seed: the split depends on labels,
/// fraction and seed only, and is the same on all ranks. Labels are any integers. Throws Error unless
/// 0 < fraction < 1 and neither part is empty.
StratifiedSplit stratified_split(std::span<const std::int64_t> labels, double fraction, std::uint64_t seed);

/// The images of these numbers, in this order, copied; all else is as it was. Throws Error for a number that is not in
/// [0, images.size()). Example:
///     #include "tandem/data/synthetic.h"
///     const ImageDataset all = make_synthetic({.count = 200});
///     const std::span<const std::int64_t> labels(all.labels.data<std::int64_t>(), 200);
///     const StratifiedSplit split = stratified_split(labels, 0.1, 1);  // 20 are held out
///     const ImageDataset training = subset(all, split.kept), validation = subset(all, split.held_out);
ImageDataset subset(const ImageDataset& images, std::span<const std::int64_t> numbers);

}  // namespace tandem::data
