// Dataset: numbered examples of any tensors, of which a Loader makes batches.
// Example:
//     class Squares final : public Dataset {  // x and x^2, for x from 0 on
//      public:
//       explicit Squares(std::int64_t size) : size_(size) {}
//       std::int64_t size() const override { return size_; }
//       Example get(std::int64_t index) const override {
//         const double x = static_cast<double>(index);
//         return {Tensor::full({1}, x), Tensor::full({1}, x * x)};
//       }
//
//      private:
//       std::int64_t size_;
//     };
//     const Squares squares(10);
//     const std::vector<float> square = squares.get(3)[1].to_vector<float>();  // {9}
#pragma once

#include "tandem/core/tensor.h"

#include <cstdint>
#include <vector>

namespace tandem::data {

/// The tensors of one example, on the CPU, of any dtypes and shapes, without gradients: what a network takes, and last
/// what its output is held against. A single tensor is both.
using Example = std::vector<Tensor>;

/// Base of data sets whose examples have numbers. There are ready ones: TensorDataset, ImageDataset, ImageFolder, and
/// those that the functions of make_dataset.h make. Where examples come one after another: IterableDataset.
class Dataset {
 public:
  Dataset() = default;
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = default;
  Dataset(Dataset&&) = default;
  Dataset& operator=(const Dataset&) = default;
  Dataset& operator=(Dataset&&) = default;

  /// How many examples there are. It must not change while a loader has this data set.
  virtual std::int64_t size() const = 0;

  /// Example `index`, from 0 to size() - 1, always the same: what is random belongs into LoaderOptions::transform.
  /// The threads of a loader call this at the same time, for different examples. What it throws ends the epoch: the
  /// loader's next() throws an Error that names the example.
  virtual Example get(std::int64_t index) const = 0;
};

}  // namespace tandem::data
