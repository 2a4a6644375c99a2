// Differentiable lookup of rows.
#include "tandem/autograd/functions/embedding.h"

#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/embedding/embedding.h"

namespace tandem::autograd {

Tensor embedding(const Tensor& indices, const Tensor& weight, std::optional<std::int64_t> padding_idx) {
  require(indices.defined() && weight.defined(), "embedding: needs indices and a weight, got {} and {}", indices,
          weight);
  require(indices.dtype() == DType::i64, "embedding: indices must be i64, got {}; use cast", indices);
  require(weight.rank() == 2 && is_floating(weight.dtype()),
          "embedding: needs a floating weight [rows, features], got {}; use cast or reshape", weight);
  require(indices.rank() < kMaxRank,
          "embedding: indices {} have {} dimensions already, the most that there can be; flatten them", indices,
          indices.rank());
  require(!padding_idx || (*padding_idx >= 0 && *padding_idx < weight.size(0)),
          "embedding: padding_idx {} is not one of the {} rows of the weight {}; give 0 to {}", padding_idx.value_or(0),
          weight.size(0), weight, weight.size(0) - 1);
  Shape shape = indices.shape();
  shape.push_back(weight.size(1));
  const Tensor positions = indices.contiguous().view({indices.numel()});
  const Tensor y = Tensor::empty(shape, weight.options());
  const Shape rows{indices.numel(), weight.size(1)};
  unrecorded([&] { kernels::embedding_forward(positions, weight.contiguous(), Out(y.view(rows))); });
  if (!should_record({weight})) return y;
  return record(
      "embedding", {weight}, y, [rows, padding_idx, saved = SavedTensor(positions)](const BackwardContext& context) {
        const Tensor gradient = context.new_gradient(0);
        kernels::embedding_backward(saved.get(), context.grad_output().contiguous().view(rows), Out(gradient));
        if (padding_idx) gradient.select(0, *padding_idx).zero();
        return std::vector<Tensor>{gradient};
      });
}

}  // namespace tandem::autograd
