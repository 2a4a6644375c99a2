// How examples become the tensors of a batch.
#pragma once

#include "tandem/data/dataset.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tandem::data {

/// Makes the tensors of a batch from one example or more: any tensors on the CPU. A first dimension of one row for each
/// example is usual, and not demanded.
using Collate = std::function<std::vector<Tensor>(std::span<const Example> examples)>;

/// Stacks the tensors of each place along a new first dimension: f32 [3, 8, 8] of 32 examples become f32 [32, 3, 8, 8],
/// dense in Layout::channels_last, `pinned` in page-locked memory. Throws Error where examples are not alike, which
/// names both by their numbers in `indices`, or by their places where there are none. Example:
///     const Tensor x = Tensor::zeros({3, 8, 8}), label = Tensor::full({}, 2, {.dtype = DType::i64});
///     const std::vector<Example> examples(32, {x, label});
///     const Tensor images = default_collate(examples)[0];  // [32, 3, 8, 8]
///     const Tensor labels = default_collate(examples)[1];  // [32]
std::vector<Tensor> default_collate(std::span<const Example> examples, std::span<const std::int64_t> indices = {},
                                    bool pinned = false);

}  // namespace tandem::data
