// Inputs of a model.
#include "tandem/train/forward.h"

#include "tandem/core/describe.h"

namespace tandem::train {

Tensor run_forward(const ForwardFunction& forward, layers::Module& model, const data::Batch& batch) {
  if (forward == nullptr) {
    require(batch.tensors.size() <= 2,
            "trainer: batches have {} tensors ({} first), and a model takes one beside the target; say by a forward "
            "function what it takes (TrainerOptions::forward)",
            batch.tensors.size(), batch.images);
    return model(batch.images);
  }
  const Tensor output = forward(model, batch);
  require(output.defined(), "trainer: the forward function gave an undefined tensor; return what the loss takes");
  return output;
}

}  // namespace tandem::train
