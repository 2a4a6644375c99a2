// Gradient metadata of tensor handles.
#include "autograd/node.h"
#include "autograd/precision.h"
#include "core/describe.h"

namespace tandem::autograd {

namespace {

Meta& meta_of(const Tensor& tensor) {
  auto& slot = tensor.autograd_meta();
  if (!slot) slot = std::make_shared<Meta>();
  return *find_meta(tensor);
}

}  // namespace

bool requires_grad(const Tensor& tensor) {
  return tensor.defined() && tensor.autograd_meta() && tensor.autograd_meta()->requires_grad;
}

const Tensor& set_requires_grad(const Tensor& tensor, bool required) {
  require(!required || is_floating(tensor.dtype()),
          "set_requires_grad: only floating tensors have gradients, this is {}", tensor);
  require(is_leaf(tensor), "set_requires_grad: {} was made by a recorded operation; call detach() first", tensor);
  meta_of(tensor).requires_grad = required;
  return tensor;
}

bool is_leaf(const Tensor& tensor) {
  const Meta* const meta = find_meta(tensor);
  return meta == nullptr || !meta->made_by.node;
}

Tensor grad(const Tensor& leaf) {
  const Meta* const meta = find_meta(leaf);
  return meta != nullptr ? meta->grad : Tensor();
}

void set_grad(const Tensor& leaf, const Tensor& gradient) {
  if (!gradient.defined()) return clear_grad(leaf);
  const auto fits = [&] {
    const bool wide = is_half(leaf.dtype()) && gradient.dtype() == DType::f32;
    return gradient.shape() == leaf.shape() && (wide || gradient.dtype() == leaf.dtype());
  };
  require(fits(), "set_grad: gradient {} does not fit tensor {}", gradient, leaf);
  Meta& meta = meta_of(leaf);
  meta.grad = gradient;
  ++meta.counts.given;
}

void clear_grad(const Tensor& leaf) {
  if (Meta* const meta = find_meta(leaf)) {
    meta->grad = Tensor();
    ++meta->counts.dropped;
  }
}

GradientCounts gradient_counts(const Tensor& leaf) {
  const Meta* const meta = find_meta(leaf);
  return meta != nullptr ? meta->counts : GradientCounts{};
}

void on_gradient_ready(const Tensor& leaf, GradientHook hook) {
  require(is_leaf(leaf), "on_gradient_ready: {} is not a leaf", leaf);
  meta_of(leaf).hooks.push_back(std::move(hook));
}

void clear_hooks(const Tensor& leaf) {
  if (Meta* const meta = find_meta(leaf)) meta->hooks.clear();
}

Edge gradient_edge(const Tensor& tensor) {
  if (!requires_grad(tensor)) return {};
  Meta& meta = *find_meta(tensor);
  if (meta.made_by.node) return meta.made_by;
  std::shared_ptr<Node> node = meta.leaf_node.lock();
  if (!node) {
    node = std::make_shared<Node>();
    node->name = "leaf";
    node->outputs = {{tensor.shape(), tensor.dtype()}};
    node->leaf = tensor;
    meta.leaf_node = node;
  }
  return {std::move(node), 0};
}

}  // namespace tandem::autograd
