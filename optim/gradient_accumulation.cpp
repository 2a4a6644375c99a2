// Gradients of one large batch from several small ones.
#include "tandem/optim/gradient_accumulation.h"

#include "tandem/autograd/variable.h"

namespace tandem::optim {

GradientAccumulation::GradientAccumulation(std::int64_t micro_batches) : micro_batches_(micro_batches) {
  require(micro_batches >= 1, "gradient accumulation: needs at least 1 micro-batch, got {}", micro_batches);
}

bool GradientAccumulation::backward(const Tensor& loss, double scale) {
  require(loss.numel() == 1, "gradient accumulation: the loss must have one element, got {}", describe(loss));
  // d(loss / k) = (1 / k) d(loss): the factor is the start of the walk, no operation of its own.
  const Tensor share = Tensor::full(loss.shape(), scale / static_cast<double>(micro_batches_), loss.options());
  autograd::backward(loss, share);
  done_ = (done_ + 1) % micro_batches_;
  return done_ == 0;
}

}  // namespace tandem::optim
