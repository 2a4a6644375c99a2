// Lookup of rows by number.
#pragma once

#include "tandem/layers/initializer.h"
#include "tandem/layers/module.h"

#include <optional>

namespace tandem::layers {

/// PyTorch's names.
struct EmbeddingOptions {
  std::int64_t num_embeddings = 0;               ///< numbers that may be looked up: 0 to this, without it
  std::int64_t embedding_dim = 0;                ///< features of each
  std::optional<std::int64_t> padding_idx = {};  ///< a number whose features begin as zeros and are not trained
};

/// torch.nn.Embedding: i64 [...] -> [..., embedding_dim]; see autograd::embedding. Parameter: weight [num_embeddings,
/// embedding_dim], normal with variance 1. Throws Error unless both sizes are positive and padding_idx is below the
/// first. Example:
///     Initializer initializer(1);
///     Embedding embedding({.num_embeddings = 100, .embedding_dim = 16}, initializer);
///     const Tensor features = embedding(Tensor::from<std::int64_t>({3, 99}, {2}));  // [2, 16]
class Embedding final : public Module {
 public:
  /// What the constructor takes.
  using Options = EmbeddingOptions;

  /// Draws the vectors from N(0, 1), as PyTorch does.
  Embedding(const Options& options, Initializer& initializer);
  Tensor forward(const Tensor& input) override;
  std::string describe() const override;

 private:
  std::optional<std::int64_t> padding_idx_;
  Tensor weight_;
};

}  // namespace tandem::layers
