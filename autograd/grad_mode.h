// Whether operations of this thread are recorded.
#pragma once

#include <utility>

namespace tandem::autograd {

/// True if operations on tensors that require gradients are recorded by this thread.
bool grad_enabled();

/// Switches recording on or off for this thread while it lives.
class GradMode {
 public:
  explicit GradMode(bool enabled);
  ~GradMode();
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool previous_;
};

/// `NoGrad guard;`: nothing is recorded until the end of the scope.
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
