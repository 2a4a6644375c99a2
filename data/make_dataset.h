// Data sets in a few lines: of a function, of tensors, of another data set.
// Example:
//     const auto squares = dataset_of(100, [](std::int64_t i) -> Example {
//       return {Tensor::full({1}, static_cast<double>(i)), Tensor::full({1}, static_cast<double>(i * i))};
//     });
//     const auto roots = transformed(squares, [](Example e) { return Example{e[1], e[0]}; });
//     const auto last = subset(roots, {98, 99});
//     const std::vector<float> root = last->get(1)[1].to_vector<float>();  // {99}
//     const auto rows = dataset_of({Tensor::zeros({8, 3}), Tensor::zeros({8}, {.dtype = DType::i64})});
//     const std::int64_t size = rows->size();  // 8
#pragma once

#include "tandem/data/dataset.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace tandem::data {

/// A data set whose example i is `get(i)`; several threads call it at once. Throws Error for a negative size.
std::shared_ptr<const Dataset> dataset_of(std::int64_t size, std::function<Example(std::int64_t index)> get);

/// A TensorDataset.
std::shared_ptr<const Dataset> dataset_of(std::vector<Tensor> tensors);

/// A data set whose example i is `transform(example i of dataset)`; several threads call it at once. For what is
/// random: LoaderOptions::transform.
std::shared_ptr<const Dataset> transformed(std::shared_ptr<const Dataset> dataset,
                                           std::function<Example(Example example)> transform);

/// The examples `indices` of another data set, in this order; batches are made as of that one, and its augmentation
/// goes by its numbers. Throws Error for numbers that it does not have.
std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> indices);

}  // namespace tandem::data
