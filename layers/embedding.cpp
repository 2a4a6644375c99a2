// Lookup of rows by number.
#include "tandem/layers/embedding.h"

#include "tandem/autograd/functions/embedding.h"

namespace tandem::layers {

Embedding::Embedding(const Options& options, Initializer& initializer) : padding_idx_(options.padding_idx) {
  require(options.num_embeddings > 0 && options.embedding_dim > 0,
          "Embedding: {} embeddings of {} features: both must be positive", options.num_embeddings,
          options.embedding_dim);
  require(!padding_idx_ || (*padding_idx_ >= 0 && *padding_idx_ < options.num_embeddings),
          "Embedding: padding_idx must be from 0 to {}, one of the {} embeddings, got {}", options.num_embeddings - 1,
          options.num_embeddings, padding_idx_.value_or(0));
  weight_ = initializer.normal({options.num_embeddings, options.embedding_dim}, 1.0);
  if (padding_idx_) weight_.detach().select(0, *padding_idx_).zero();
  register_parameter("weight", weight_);
}

Tensor Embedding::forward(const Tensor& input) { return autograd::embedding(input, weight_, padding_idx_); }

std::string Embedding::describe() const {
  const std::string padding = padding_idx_ ? fmt::format(", padding_idx {}", *padding_idx_) : std::string();
  return fmt::format("Embedding({}, {}{})", weight_.size(0), weight_.size(1), padding);
}

}  // namespace tandem::layers
