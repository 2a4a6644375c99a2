// Counting the operations of a piece of code, whichever ops it calls.
#pragma once

namespace tandem {

/// Adds up, while it lives, the floating-point operations of matrix products and convolutions that this thread calls:
/// two for each product that is added to a sum, whatever algorithm computes it. What is done per element is not
/// counted. Counters nest; each counts what the inner ones do, and ends in the thread that made it. Example:
///     #include "tandem/autograd/functions.h"
///     const WorkCounter counter;
///     autograd::matmul(Tensor::zeros({2, 3}), Tensor::zeros({3, 5}));
///     const double flops = counter.flops();  // 60
class WorkCounter {
 public:
  WorkCounter();
  ~WorkCounter();
  WorkCounter(const WorkCounter&) = delete;
  WorkCounter& operator=(const WorkCounter&) = delete;

  /// Operations that were counted since it was made.
  double flops() const { return flops_; }

 private:
  double flops_ = 0.0;
  WorkCounter* outer_;

  friend void count_work(double flops);
};

/// To all counters of this thread.
void count_work(double flops);

}  // namespace tandem
