// Batches of one rank, ready for the network, made in the background.
#pragma once

#include "tandem/data/augment.h"
#include "tandem/data/dataset.h"
#include "tandem/data/sampler.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace tandem::data {

/// One rank's part of a global batch, on the loader's device. Where a small last batch leaves nothing for this rank, n
/// is 0.
struct Batch {
  Tensor images;                  ///< [n,C,H,W], channels_last, augmented and normalised
  Tensor labels;                  ///< i64 [n]
  std::int64_t index = 0;         ///< number of the global batch in its epoch
  std::int64_t global_count = 0;  ///< images of all ranks in this batch: weight gradients by n / global_count

  std::int64_t count() const { return labels.size(0); }
};

struct LoaderOptions {
  std::int64_t global_batch_size = 128;  ///< of all ranks together
  bool drop_last = false;                ///< leaves an epoch's last batch out where the images do not fill it
  AugmentOptions augment = {};
  std::uint64_t seed = 0;    ///< of the augmentation
  int threads = 1;           ///< background threads; 0: next() does the work
  int prefetch = 3;          ///< batches made ahead
  DType dtype = DType::f32;  ///< of the images, computed in f32 and rounded once
  Device device = {};        ///< where the batches go; their copies run beside the device's computing
};

/// Hands out the batches of one epoch after the other. The contents of a batch depend on the data set, the sampler, the
/// options (without threads and prefetch) and the epoch only. Not for use by several threads at once.
/// Example:
///     #include "tandem/data/synthetic.h"
///     const auto images = std::make_shared<const Dataset>(make_synthetic({.count = 1000}));
///     const DistributedSampler sampler(images->size(), 1, 0, true, 1);  // one rank, shuffled
///     Loader loader(images, sampler, {.global_batch_size = 128, .augment = parse_augment("crop=4,flip")});
///     const std::int64_t batches = loader.batches();  // 8
///     loader.start(0);
///     while (const std::optional<Batch> batch = loader.next()) {
///       const Tensor x = batch->images;  // the last one: [104, 3, 32, 32]
///     }
class Loader {
 public:
  /// Keeps `dataset`. Throws Error if it is not in order (see check()), if the sampler is for another size, or on
  /// options that make no sense, such as batch size 0, drop_last where no batch would be left, a reflecting crop wider
  /// than the images, images of integers, or a device that is not there.
  Loader(std::shared_ptr<const Dataset> dataset, const DistributedSampler& sampler, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Begins `epoch` and its background work; what is left of the epoch before is dropped.
  void start(std::uint32_t epoch);

  /// The next batch of this rank, for use on the current stream; nothing after the last one of the epoch. Rethrows what
  /// went wrong in the background.
  /// Throws Error before the first start().
  std::optional<Batch> next();

  /// Batches in an epoch, the same on all ranks.
  std::int64_t batches() const;

  /// Images of all ranks in an epoch: all of the data set, but for a last batch that is dropped.
  std::int64_t images_per_epoch() const;

  const Dataset& dataset() const;
  const DistributedSampler& sampler() const;
  const LoaderOptions& options() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::data
