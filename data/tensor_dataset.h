// TensorDataset: examples that are the rows of tensors in memory.
#pragma once

#include "tandem/data/batch_source.h"

namespace tandem::data {

/// Example i is row i, the i-th slice of the first dimension, of each tensor. torch.utils.data.TensorDataset. Batches
/// are copied row by row, without a detour over examples. Tensors are kept as they are, without gradients, or copied
/// where they are not dense in Layout::channels_last. Example:
///     #include "tandem/data/loader.h"
///     const Tensor x = Tensor::zeros({960, 2}), y = Tensor::zeros({960}, {.dtype = DType::i64});
///     const TensorDataset points({x, y});
///     const Tensor point = points.get(7)[0];  // [2]
///     Loader loader(points, {points.size(), 1, 0, true, 1}, {.global_batch_size = 96});
///     const std::int64_t batches = loader.batches();  // 10
class TensorDataset final : public BatchSource {
 public:
  /// Throws Error unless there is a tensor, and all are on the CPU, have a first dimension, and that of one size.
  explicit TensorDataset(std::vector<Tensor> tensors);

  /// Rows of each tensor.
  std::int64_t size() const override { return tensors_.front().size(0); }
  /// Views of the rows. Throws Error for a number that is none of an example.
  Example get(std::int64_t index) const override;
  /// The rows of these numbers: see Dataset.
  std::vector<Tensor> get_batch(std::span<const std::int64_t> indices, std::uint32_t epoch,
                                const BatchOptions& options) const override;

  /// As they are kept: without gradients, dense in Layout::channels_last.
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

}  // namespace tandem::data
