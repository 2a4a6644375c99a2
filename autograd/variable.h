// The gradient side of a tensor handle: which tensors want gradients, where these arrive, and how to ask for them.
#pragma once

#include "tandem/core/tensor.h"

#include <cstdint>
#include <functional>

namespace tandem::autograd {

/// True for leaves marked by set_requires_grad and for every tensor computed from one while recording.
bool requires_grad(const Tensor& tensor);

/// Marks a leaf (a tensor no recorded operation made) as wanting a gradient, or not. Returns the same tensor. Throws
/// Error for one that is no leaf, and for an integer dtype that is to want one.
Tensor set_requires_grad(const Tensor& tensor, bool required = true);

/// True unless a recorded operation made this tensor.
bool is_leaf(const Tensor& tensor);

/// The gradient of a leaf, not a copy: same shape and dtype, or f32 for half leaves whose gradient has been added up
/// from several backward()s or exchanged in f32. Undefined before the first backward() and after clear_grad().
Tensor grad(const Tensor& leaf);

/// Gives a leaf its gradient, as grad() describes it: on the leaf's device, each element in memory of its own (expand()
/// does not give that), none of it the leaf's. backward() adds to these elements where they are dense. An undefined one
/// is clear_grad(). Throws Error where it does not fit.
void set_grad(const Tensor& leaf, const Tensor& gradient);
/// Drops the gradient: grad() is undefined afterwards.
void clear_grad(const Tensor& leaf);

/// Lets backward() leave the gradient of `leaf` in `place` (in a bucket of gradients, say) wherever the leaf has no
/// gradient yet: the kernel that makes the gradient writes there if the operation's backward function asks for
/// BackwardContext::new_gradient(); otherwise it is copied there once. grad() is then `place` itself. Shape and device
/// are the leaf's, the dtype too, or f32 for a half leaf; dense, and aligned to kAlignment (core/allocator.h) as fresh
/// memory is. clear_grad() drops the gradient and keeps the place, so that the next backward() writes over the elements
/// of a gradient that somebody still holds: clone() what is to stay. An undefined `place`: gradients get memory of
/// their own, as before the first call.
void set_gradient_place(const Tensor& leaf, const Tensor& place);
/// What set_gradient_place() was given, or an undefined tensor.
Tensor gradient_place(const Tensor& leaf);

/// The leaf and all its handles become `value` (Tensor::set_data): how a module changes its parameters' dtype and
/// device. The gradient is dropped, as it was of the old one; requires_grad() and hooks stay. What was recorded before
/// cannot be walked any more. Throws Error for a leaf with a gradient place, which is of the old dtype and device.
void replace_data(const Tensor& leaf, const Tensor& value);

/// Copies `gradient` to `place` (one shape and device), converting it to the dtype there; does nothing where these are
/// its elements already.
void copy_gradient(const Tensor& gradient, const Tensor& place);

/// How often grad() was dropped, by clear_grad(), and how often it was given: set, replaced or added to, by set_grad()
/// or backward(). Writes into its elements do not count.
struct GradientCounts {
  std::uint64_t dropped = 0, given = 0;  ///< how often each
};
/// Those of `leaf` since it was made.
GradientCounts gradient_counts(const Tensor& leaf);

/// Takes the gradient of a leaf and returns what becomes its gradient: what it was given, with elements changed or not,
/// or another tensor, which set_grad() would take; backward() throws Error on any other, an undefined one too.
/// It is called as soon as that gradient is final within a backward(), while earlier layers are still at work: after
/// the last contribution was added to what earlier backward()s left, with recording off. grad(leaf) is set once all
/// hooks have returned. They run in the order they were added, each on what the one before returned, and not at all for
/// a leaf that has no gradient. A hook may add hooks or clear them: that counts from the next time on. A hook
/// that holds its own leaf keeps it for ever: capture a reference or nothing. Example:
///
///   const Tensor weight = set_requires_grad(Tensor::zeros({3}));
///   on_gradient_ready(weight, [](Tensor gradient) {
///     gradient.fill(0.0);  // this weight stays as it is
///     return gradient;
///   });
using GradientHook = std::function<Tensor(Tensor gradient)>;
/// Adds a hook behind those that are there. Throws Error where `leaf` is no leaf.
void on_gradient_ready(const Tensor& leaf, GradientHook hook);

/// The same, but called after all hooks of on_gradient_ready(), also after those that are added later: for what hands
/// the gradient on, to other ranks, say.
void on_gradient_final(const Tensor& leaf, GradientHook hook);

/// Drops the hooks of on_gradient_ready(); those of on_gradient_final() stay.
void clear_hooks(const Tensor& leaf);

/// What becomes of the tape.
struct BackwardOptions {
  /// Keeps the tape and its saved tensors, so that backward() can run over it again.
  bool retain_graph = false;
};

/// Adds d(root)/d(leaf) to the gradient of every leaf that `root` was computed from. A `root` of more than one element
/// needs `grad_root`, of its shape: then the sum over elements of grad_root * d(root)/d(leaf) is added.
/// Saved tensors are freed as the walk passes them, unless the options keep them. Throws Error for a root that requires
/// no gradient, for a `grad_root` of another shape or dtype, where the tape was freed by an earlier backward(), and
/// where a saved tensor was changed in place.
void backward(const Tensor& root, const Tensor& grad_root = {}, BackwardOptions options = {});

}  // namespace tandem::autograd
