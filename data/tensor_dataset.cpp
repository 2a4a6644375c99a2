// Rows of tensors.
#include "tandem/data/tensor_dataset.h"

#include "tandem/core/describe.h"
#include "tandem/core/out.h"

#include <cstring>
#include <utility>

namespace tandem::data {

TensorDataset::TensorDataset(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  require(!tensors_.empty(), "TensorDataset: got no tensors; give one or more");
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    Tensor& tensor = tensors_[i];
    require(tensor.defined() && tensor.rank() >= 1,
            "TensorDataset: tensor {} needs a first dimension, that of the examples, got {}", i, tensor);
    require(tensor.device() == Device{},
            "TensorDataset: tensor {} is on {}, and data sets are on the CPU; "
            "LoaderOptions::device is where their batches go",
            i, tensor.device());
    require(tensor.size(0) == tensors_[0].size(0),
            "TensorDataset: tensor {} has {} rows, tensor 0 has {}: {}, {}; they "
            "must have as many as there are examples",
            i, tensor.size(0), tensors_[0].size(0), tensor, tensors_[0]);
    tensor = tensor.detach().contiguous(Layout::channels_last);
  }
}

Example TensorDataset::get(std::int64_t index) const {
  require(index >= 0 && index < size(), "TensorDataset: there is no example {}, of {}; they are numbered from 0", index,
          size());
  Example example;
  for (const Tensor& tensor : tensors_) example.push_back(tensor.select(0, index));
  return example;
}

std::vector<Tensor> TensorDataset::get_batch(std::span<const std::int64_t> indices, std::uint32_t /*epoch*/,
                                             const BatchOptions& options) const {
  const MemoryTagScope tag(MemoryTag::data);
  std::vector<Tensor> batch;
  for (const Tensor& tensor : tensors_) {
    Shape shape = tensor.shape();
    shape[0] = static_cast<std::int64_t>(indices.size());
    batch.push_back(
        Tensor::empty(shape, {.dtype = tensor.dtype(), .layout = Layout::channels_last, .pinned = options.pinned}));
    const auto row_bytes =
        static_cast<std::size_t>(shape[0] == 0 ? 0 : element_count(shape) / shape[0] * size_of(tensor.dtype()));
    if (row_bytes == 0) continue;
    const auto* from = static_cast<const std::uint8_t*>(tensor.raw_data());
    auto* to = static_cast<std::uint8_t*>(Out(batch.back()).raw_data());
    for (const std::int64_t index : indices) {
      require(index >= 0 && index < size(), "TensorDataset: there is no example {}, of {}; they are numbered from 0",
              index, size());
      std::memcpy(to, from + static_cast<std::size_t>(index) * row_bytes, row_bytes);
      to += row_bytes;
    }
  }
  return batch;
}

}  // namespace tandem::data
