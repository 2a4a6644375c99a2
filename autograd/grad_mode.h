// Whether operations of this thread are recorded.
#pragma once

#include <utility>

namespace tandem::autograd {

/// True if operations on tensors that require gradients are recorded by this thread.
bool grad_enabled();

/// Switches recording on or off for this thread while it lives.
class GradMode {
 public:
  /// The end of the scope brings back what was before.
  explicit GradMode(bool enabled);
  ~GradMode();
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool previous_;
};

/// `NoGrad guard;`: nothing is recorded until the end of the scope.
/// Example:
///     #include "tandem/autograd/functions.h"
///     #include "tandem/autograd/variable.h"
///     const Tensor w = set_requires_grad(Tensor::full({3}, 2.0));
///     const NoGrad no_grad;
///     w.fill(0.5);                                         // which a thread that records may not do
///     const bool recorded = requires_grad(scale(w, 2.0));  // false
class NoGrad : GradMode {
 public:
  NoGrad() : GradMode(false) {}
};

/// Returns compute(), called with recording off: for what is behind a recorded function, which may then take raw views
/// and copies of its inputs and call kernels that do.
template <typename Compute>
auto unrecorded(Compute&& compute) {
  const NoGrad no_grad;
  return std::forward<Compute>(compute)();
}

}  // namespace tandem::autograd
