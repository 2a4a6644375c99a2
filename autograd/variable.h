// The gradient side of a tensor handle: which tensors want gradients, where these arrive, and how to ask for them.
#pragma once

#include "core/tensor.h"

#include <cstdint>
#include <functional>

namespace tandem::autograd {

/// True for leaves marked by set_requires_grad and for every tensor computed from one while recording.
bool requires_grad(const Tensor& tensor);

/// Marks a leaf (a tensor no recorded operation made) as wanting a gradient, or not. Floating dtypes only.
/// Returns the same tensor.
const Tensor& set_requires_grad(const Tensor& tensor, bool required = true);

/// True unless a recorded operation made this tensor.
bool is_leaf(const Tensor& tensor);

/// The gradient of a leaf: same shape and dtype, or f32 for half leaves whose gradient has been added up from several
/// backward()s or exchanged in f32. Undefined before the first backward() and after clear_grad().
Tensor grad(const Tensor& leaf);
void set_grad(const Tensor& leaf, const Tensor& gradient);
void clear_grad(const Tensor& leaf);

/// How often grad() was dropped, by clear_grad(), and how often it was given: set, replaced or added to, by set_grad()
/// or backward(). Writes into its elements do not count.
struct GradientCounts {
  std::uint64_t dropped = 0, given = 0;
};
GradientCounts gradient_counts(const Tensor& leaf);

/// Called with a leaf's gradient as soon as it is final within a backward(), while earlier layers are still at work:
/// after the last contribution was added, before backward() returns. The hook may change the gradient's elements or
/// replace it by set_grad. Hooks run in the order they were added.
using GradientHook = std::function<void(const Tensor& leaf)>;
void on_gradient_ready(const Tensor& leaf, GradientHook hook);
void clear_hooks(const Tensor& leaf);

struct BackwardOptions {
  /// Keeps the tape and its saved tensors, so that backward() can run over it again.
  bool retain_graph = false;
};

/// Adds d(root)/d(leaf) to the gradient of every leaf that `root` was computed from. A `root` of more than one element
/// needs `grad_root`, of its shape: then the sum over elements of grad_root * d(root)/d(leaf) is added.
/// Saved tensors are freed as the walk passes them.
void backward(const Tensor& root, const Tensor& grad_root = {}, BackwardOptions options = {});

}  // namespace tandem::autograd
