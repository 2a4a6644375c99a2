// IterableDataset: examples that come one after another, without numbers: from a pipe, a large file, a generator.
// Example:
//     #include "tandem/data/loader.h"
//     const auto count_to_five = [](std::uint32_t) {
//       return [n = 0]() mutable -> std::optional<Example> {
//         if (n == 5) return std::nullopt;
//         return Example{Tensor::full({1}, n++)};
//       };
//     };
//     Loader loader(stream_of(count_to_five), RankShare{}, {.global_batch_size = 3});
//     loader.start(0);
//     const Tensor first = loader.next()->tensors[0];   // [3, 1]
//     const Tensor second = loader.next()->tensors[0];  // [2, 1]
//     const bool more = loader.next().has_value();      // false
#pragma once

#include "tandem/data/dataset.h"
#include "tandem/data/sampler.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace tandem::data {

/// Base of data sets without numbers. A loader reads them in one thread, in order: they are shuffled as they come.
///
/// Each rank has a stream of its own, all of which must give the same examples: of each global batch, rank r of N takes
/// the examples r, r + N, r + 2 N, ... and passes over the others. So N ranks see the global batches that one rank
/// sees.
class IterableDataset {
 public:
  IterableDataset() = default;
  virtual ~IterableDataset() = default;
  IterableDataset(const IterableDataset&) = delete;
  IterableDataset& operator=(const IterableDataset&) = delete;

  /// Goes back to the beginning, of the epoch of this number. Called before anything is read, and when the epoch before
  /// was left in its middle.
  virtual void start(std::uint32_t epoch) = 0;

  /// The next example; nothing at the end. What it throws ends the epoch, as with Dataset::get(). A loader that is
  /// dropped waits for the call in work to return.
  virtual std::optional<Example> next() = 0;

  /// Passes over the next example, which is another rank's; false at the end. To override where reading costs.
  virtual bool skip() { return next().has_value(); }

  /// How many examples an epoch has, where that is known: the epoch then ends behind so many, and to have fewer is an
  /// error. A Trainer needs to know.
  virtual std::optional<std::int64_t> size() const { return std::nullopt; }
};

/// Gives the next example; nothing at the end.
using NextExample = std::function<std::optional<Example>()>;

/// A stream of functions: `start(epoch)` gives the function that gives one example after the other. With a size the
/// stream may be endless. Throws Error for a negative size.
std::shared_ptr<IterableDataset> stream_of(std::function<NextExample(std::uint32_t epoch)> start,
                                           std::optional<std::int64_t> size = std::nullopt);

}  // namespace tandem::data
