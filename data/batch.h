// Batch: what a loader hands out.
#pragma once

#include "tandem/core/tensor.h"

#include <cstdint>
#include <vector>

namespace tandem::data {

/// One rank's part of a global batch, on the loader's device: the examples' tensors, each with a row for every example
/// (n of them) unless a collate function has made others. A small last batch may leave nothing for this rank: n is 0,
/// and of a stream there are no tensors at all. Example:
///     #include "tandem/data/loader.h"
///     #include "tandem/data/tensor_dataset.h"
///     const TensorDataset points({Tensor::zeros({8, 2}), Tensor::zeros({8, 3}), Tensor::zeros({8})});
///     Loader loader(points, {points.size(), 1, 0, true, 1}, {.global_batch_size = 4});
///     loader.start(0);
///     const Batch batch = *loader.next();
///     const Tensor second_input = batch.tensors[1];  // [4, 3]
///     const Tensor target = batch.labels;            // [4]
struct Batch {
  std::vector<Tensor> tensors;  ///< as in an Example: inputs, and the target last; of rank 4 in channels_last
  Tensor images;                ///< the first of them: of images [n,C,H,W], augmented and normalised
  Tensor labels;                ///< the last: what outputs are held against, of classes i64 [n]; MixOptions: f32 [n, C]
  std::int64_t index = 0;       ///< number of the global batch in its epoch
  std::int64_t local_count = 0;   ///< n
  std::int64_t global_count = 0;  ///< examples of all ranks in this batch: weight gradients by n / global_count

  /// Examples of this rank.
  std::int64_t count() const { return local_count; }
};

/// `count` of a batch's examples, from the `first` on: views of its tensors. Throws Error for a tensor that has not a
/// row for each example.
Batch examples_of(const Batch& batch, std::int64_t first, std::int64_t count);

}  // namespace tandem::data
