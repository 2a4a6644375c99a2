// Lookup of rows by number.
#include "tandem/layers/embedding.h"

#include "tandem/autograd/functions/embedding.h"

namespace tandem::layers {

Embedding::Embedding(const Options& options, Initializer& initializer) {
  require(options.num_embeddings > 0 && options.embedding_dim > 0,
          "Embedding: {} embeddings of {} features: both must be positive", options.num_embeddings,
          options.embedding_dim);
  weight_ = initializer.normal({options.num_embeddings, options.embedding_dim}, 1.0);
  register_parameter("weight", weight_);
}

Tensor Embedding::forward(const Tensor& input) { return autograd::embedding(input, weight_); }

std::string Embedding::describe() const { return fmt::format("Embedding({}, {})", weight_.size(0), weight_.size(1)); }

}  // namespace tandem::layers
