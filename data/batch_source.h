// BatchSource: a data set that makes whole batches faster than a loader does from its examples.
#pragma once

#include "tandem/data/augment.h"
#include "tandem/data/dataset.h"
#include "tandem/data/deferred_batch.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tandem::data {

/// How batches are made, as LoaderOptions say.
struct BatchOptions {
  AugmentOptions augment = {};
  std::uint64_t seed = 0;    ///< of the augmentation
  DType dtype = DType::f32;  ///< of images; other tensors keep theirs
  bool pinned = false;       ///< in page-locked memory
};

/// A loader asks such a data set for batches rather than for examples, unless it has a transform or a collate function.
class BatchSource : public Dataset {
 public:
  /// Throws Error where batches cannot be made by these options. By default: where images should be augmented.
  virtual void check_options(const BatchOptions& options) const;

  /// The tensors of the examples `indices`, stacked along a new first dimension: dense in Layout::channels_last, and
  /// new, so that a loader may hand them out. Of no index, tensors of no rows. Called by several threads at once, each
  /// of which works alone: no parallel_for here.
  virtual std::vector<Tensor> get_batch(std::span<const std::int64_t> indices, std::uint32_t epoch,
                                        const BatchOptions& options) const = 0;

  /// The same, but for the images of a GPU, which are to be made later: what that takes goes to the GPU, and `rest`
  /// gets the tensors, of which the first is undefined. Nothing where that cannot be done; so by default.
  virtual std::optional<ImagesToMake> defer_batch(std::span<const std::int64_t> indices, std::uint32_t epoch,
                                                  const BatchOptions& options, std::vector<Tensor>& rest) const;

  /// A batch of one, without its first dimension; images are neither augmented nor cast.
  Example get(std::int64_t index) const override;

  /// A copy whose images are in the memory of `device`, which then makes the same batches there; what else batches hold
  /// may stay on the CPU. Nothing where that cannot be done; so by default.
  virtual std::shared_ptr<const BatchSource> resident_on(Device device) const;
};

}  // namespace tandem::data
