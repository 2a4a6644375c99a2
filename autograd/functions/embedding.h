// Differentiable lookup of rows.
#pragma once

#include "tandem/core/tensor.h"

#include <cstdint>
#include <optional>

namespace tandem::autograd {

/// As torch.nn.functional.embedding: the rows of weight [V, D] that the indices name, [shape of indices, D]. indices:
/// i64 of any shape and strides, in [0, V); weight: floating, any strides; the result has its dtype. Keeps the indices.
/// The gradient of weight is dense, and the same bits every time. An index outside of the rows is an Error on the CPU,
/// and a row of NaN on a GPU: see kernels::embedding_forward. The row of `padding_idx`, in [0, V), is looked up like
/// others, and its gradient is 0: the number that fills up short texts is not trained.
/// Example:
///     const Tensor weight = Tensor::from<float>({0, 1, 10, 11, 20, 21}, {3, 2});
///     const Tensor rows = embedding(Tensor::from<std::int64_t>({2, 0}, {2}), weight);
///     const std::vector<float> values = rows.to_vector<float>();  // {20, 21, 0, 1}
Tensor embedding(const Tensor& indices, const Tensor& weight, std::optional<std::int64_t> padding_idx = {});

}  // namespace tandem::autograd
