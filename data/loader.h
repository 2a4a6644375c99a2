// Batches of one rank, ready for the network, made in the background.
#pragma once

#include "tandem/data/augment.h"
#include "tandem/data/batch.h"
#include "tandem/data/collate.h"
#include "tandem/data/dataset.h"
#include "tandem/data/deferred_batch.h"
#include "tandem/data/example_random.h"
#include "tandem/data/iterable_dataset.h"
#include "tandem/data/mixing.h"
#include "tandem/data/sampler.h"

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace tandem::data {

/// Makes another example of one, with random numbers of its own; several threads call it at once.
using Transform = std::function<Example(Example example, ExampleRandom& random)>;

/// How batches are made.
struct LoaderOptions {
  std::int64_t global_batch_size = 128;  ///< of all ranks together
  bool drop_last = false;                ///< leaves an epoch's last batch out where the examples do not fill it
  AugmentOptions augment = {};           ///< of images as bytes: ImageDataset, ImageFolder
  MixOptions mix = {};                   ///< of images as bytes: labels become class probabilities f32 [n, classes]
  std::uint64_t seed = 0;                ///< of the augmentation, the mixing, the transform and the order
  bool shuffle = false;                  ///< another order in each epoch; where no sampler is given
  RankShare share = {};                  ///< which ranks share the data set; where no sampler is given
  int threads = 1;                       ///< background threads, of a stream one at most; 0: next() does the work
  int prefetch = 3;                      ///< batches made ahead
  DType dtype = DType::f32;  ///< of the images, computed in f32 and rounded once; f32 inputs of others become that
  Device device = {};        ///< where the batches go; their copies run beside the device's computing
  /// Keeps the images as bytes in the memory of `device` and makes the same batches there, so that each step copies
  /// only what is drawn for its images, and labels. For ImageDataset, as it is or as subset() makes it, without `mix`,
  /// and not of f64. Each loader keeps images of its own there, of a subset() of a shared data set all images of that.
  bool resident = false;
  Transform transform = {};  ///< of each example; empty: none
  Collate collate = {};      ///< empty: default_collate()
};

/// Hands out the batches of one epoch after the other. The contents of a batch depend on the data set, the sampler, the
/// options (without threads and prefetch) and the epoch only. Not for use by several threads at once.
/// Example:
///     #include "tandem/data/synthetic.h"
///     const ImageDataset images = make_synthetic({.count = 1000});
///     Loader loader(images, {.global_batch_size = 128, .augment = parse_augment("crop=4,flip"), .shuffle = true});
///     const std::int64_t batches = loader.batches();  // 8
///     loader.start(0);
///     while (const std::optional<Batch> batch = loader.next()) {
///       const Tensor x = batch->images;  // the last one: [104, 3, 32, 32]
///     }
class Loader {
 public:
  /// Keeps `dataset`. Throws Error if it is not in order (as an ImageDataset that fails check()), if the sampler is for
  /// another size, or on options that make no sense, such as batch size 0, drop_last where no batch would be left,
  /// `shuffle` or `share` beside a sampler, a reflecting crop as wide as the images, augmentation of what is no image,
  /// an integer dtype, a device that is not there, or `resident` for what cannot be or does not fit there.
  Loader(std::shared_ptr<const Dataset> dataset, const DistributedSampler& sampler, const LoaderOptions& options);
  /// The same, of a data set that is copied; its tensors are shared.
  template <std::derived_from<Dataset> D>
  Loader(D dataset, const DistributedSampler& sampler, const LoaderOptions& options)
      : Loader(std::make_shared<const D>(std::move(dataset)), sampler, options) {}
  /// The same with a sampler of its own: in the order and with the share that the options name.
  Loader(const std::shared_ptr<const Dataset>& dataset, const LoaderOptions& options);
  template <std::derived_from<Dataset> D>
  Loader(D dataset, const LoaderOptions& options) : Loader(std::make_shared<const D>(std::move(dataset)), options) {}
  /// Of a stream, which nothing else may read while the loader is there.
  Loader(std::shared_ptr<IterableDataset> stream, const RankShare& share, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Begins `epoch` and its background work; what is left of the epoch before is dropped, after the examples that its
  /// threads are at. The first `skip` batches are left out, as a run that goes on in the middle of an epoch wants it:
  /// their examples are not made, and those of a stream are passed over (IterableDataset::skip()). With `defers`, the
  /// images of LoaderOptions::resident on a GPU are not made ahead, but on the stream that takes them, when they are
  /// wanted: for next_deferred().
  void start(std::uint32_t epoch, std::int64_t skip = 0, bool defers = false);

  /// The next batch of this rank, for use on the current stream; nothing after the last one of the epoch, or after an
  /// error. Rethrows what went wrong in the background: for what a data set, transform or collate function threw, an
  /// Error that names the example, or the batch.
  /// Throws Error before the first start().
  std::optional<Batch> next();
  /// The same, and with start(..., defers) the images may still be made where they are wanted.
  std::optional<DeferredBatch> next_deferred();

  /// Batches in an epoch, the same on all ranks. Throws Error for a stream without a size.
  std::int64_t batches() const;

  /// Examples of all ranks in an epoch: all of the data set, but for a last batch that is dropped. Throws as batches().
  std::int64_t images_per_epoch() const;

  /// Zeros in place of a batch of `count` examples, of the same shapes, dtypes and strides: made by looking at example
  /// 0. Nothing where that does not tell: of a stream or an empty data set, and where collate makes no row of an
  /// example.
  std::optional<Batch> zeros(std::int64_t count) const;

  /// Throws Error where the loader reads a stream.
  const Dataset& dataset() const;
  /// Of a stream: its share, with size 0 if that is not known.
  const DistributedSampler& sampler() const;
  /// As they were given.
  const LoaderOptions& options() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::data
