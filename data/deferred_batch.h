// Batches whose images a GPU is still to make, where they are wanted.
#pragma once

#include "tandem/core/out.h"
#include "tandem/data/batch.h"

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace tandem::data {

/// Images that are not there yet.
struct ImagesToMake {
  Shape shape;            ///< N,C,H,W
  TensorOptions options;  ///< channels_last
  /// Makes them, by a kernel on the current stream.
  std::function<void(const Out& images)> make;
  std::vector<Tensor> memory;  ///< that this reads
};

/// A batch as Loader::next_deferred() hands it out: whole, or without its images, which then are made once and where
/// they are wanted. For use on one stream, by one thread. Example:
///     #include "tandem/data/loader.h"
///     #include "tandem/data/synthetic.h"
///     Loader loader(make_synthetic({.count = 20}), {.global_batch_size = 10});
///     loader.start(0, 0, true);
///     const Tensor images = Tensor::empty({10, 3, 32, 32}, {.layout = Layout::channels_last});
///     const Tensor labels = Tensor::empty({10}, {.dtype = DType::i64});
///     DeferredBatch batch = *loader.next_deferred();
///     batch.write_to({images, labels});
class DeferredBatch {
 public:
  /// A whole one.
  explicit DeferredBatch(Batch batch) : batch_(std::move(batch)) {}
  /// Whose first tensor is to be made.
  DeferredBatch(Batch batch, ImagesToMake images) : batch_(std::move(batch)), images_(std::move(images)) {}

  /// Examples of this rank.
  std::int64_t count() const { return batch_.count(); }
  /// Number of the global batch in its epoch.
  std::int64_t index() const { return batch_.index; }
  /// Batch::labels
  const Tensor& labels() const { return batch_.labels; }
  /// Whether the tensors have the shapes, dtypes, strides and device of the batch's.
  bool is_like(const std::vector<Tensor>& tensors) const;

  /// All of it: images are made here where they are not there.
  const Batch& whole();
  /// Writes it to tensors for which is_like() holds. Images that are not there are made in the first of them.
  void write_to(const std::vector<Tensor>& tensors) const;

 private:
  Batch batch_;
  ImagesToMake images_;  // without `make`: they are there
};

}  // namespace tandem::data
