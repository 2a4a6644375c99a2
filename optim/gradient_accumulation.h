// Gradients of one large batch from several small ones.
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::optim {

/// Adds up the gradients of `micro_batches` losses, each a mean over its own equally large micro-batch, so that the sum
/// is the gradient of the mean over all of them.
/// Example:
///     #include "tandem/autograd/functions.h"
///     #include "tandem/autograd/variable.h"
///     const Tensor w = autograd::set_requires_grad(Tensor::full({}, 1.0));
///     GradientAccumulation accumulation(2);
///     for (const double factor : {3.0, 5.0}) {  // of all but the last, ranks need not exchange gradients
///       const bool complete = accumulation.backward(autograd::scale(w, factor));
///       // if complete: optimizer.step(), optimizer.zero_grad()
///     }
///     const double slope = autograd::grad(w).item();  // 4
class GradientAccumulation {
 public:
  /// Throws Error unless micro_batches >= 1.
  explicit GradientAccumulation(std::int64_t micro_batches);

  /// True if the next backward() completes a batch: its gradients are the ones to synchronise.
  bool is_last() const { return done_ + 1 == micro_batches_; }

  /// Runs autograd's backward on scale * loss / micro_batches (rank 0 or one element); `scale` is that of a GradScaler,
  /// the same for the whole batch. True if that completed the batch. Throws Error for a loss of another size.
  bool backward(const Tensor& loss, double scale = 1.0);

  /// As it was made with.
  std::int64_t micro_batches() const { return micro_batches_; }

 private:
  std::int64_t micro_batches_, done_ = 0;
};

}  // namespace tandem::optim
