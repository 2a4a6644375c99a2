// Gradient metadata of tensor handles.
#include "tandem/autograd/node.h"
#include "tandem/autograd/precision.h"
#include "tandem/core/allocator.h"
#include "tandem/core/describe.h"
#include "tandem/core/module_scope.h"
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/elementwise/plain_loop.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tandem::autograd {

namespace {

Meta& meta_of(const Tensor& tensor) {
  auto& slot = tensor.autograd_meta();
  if (!slot) slot = std::make_shared<Meta>();
  return *find_meta(tensor);
}

/// A gradient of the leaf's shape and dtype, or in f32 of a half leaf.
bool fits(const Tensor& gradient, const Tensor& leaf) {
  const bool wide = is_half(leaf.dtype()) && gradient.dtype() == DType::f32;
  return gradient.shape() == leaf.shape() && (wide || gradient.dtype() == leaf.dtype());
}

/// True unless each step along a dimension goes beyond all that the dimensions of shorter steps reach: then no two
/// elements are in one place, as they are in what expand() makes.
bool repeats_elements(const Tensor& tensor) {
  DimOrder order{};
  int count = 0;
  for (int dim = 0; dim < tensor.rank(); ++dim) {
    if (tensor.size(dim) == 0) return false;
    if (tensor.size(dim) > 1) order[static_cast<std::size_t>(count++)] = dim;
  }
  sort_dims(order, count, [&](int a, int b) { return tensor.stride(a) < tensor.stride(b); });
  std::int64_t reached = 0;
  for (int i = 0; i < count; ++i) {
    const int dim = order[static_cast<std::size_t>(i)];
    if (tensor.stride(dim) <= reached) return true;
    reached += (tensor.size(dim) - 1) * tensor.stride(dim);
  }
  return false;
}

/// Calls visit(first byte, bytes) for each element, counted from the storage's beginning.
template <typename Visit>
void for_each_element(const Tensor& tensor, Visit&& visit) {
  const std::int64_t bytes = size_of(tensor.dtype());
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    visit((tensor.offset() + kernels::reference::offset_of(i, tensor.shape(), tensor.strides())) * bytes, bytes);
}

/// The bytes from the first to the last element, [begin, end), counted likewise; strides are not negative.
std::pair<std::int64_t, std::int64_t> reach_of(const Tensor& tensor) {
  std::int64_t last = tensor.offset();
  for (int dim = 0; dim < tensor.rank(); ++dim) last += (tensor.size(dim) - 1) * tensor.stride(dim);
  return {tensor.offset() * size_of(tensor.dtype()), (last + 1) * size_of(tensor.dtype())};
}

/// True if an element of one is, in part, an element of the other.
bool shares_elements(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0 || a.storage() != b.storage()) return false;
  const std::pair reach = reach_of(a), other_reach = reach_of(b);
  const std::int64_t begin = reach.first, end = reach.second;
  if (other_reach.second <= begin || end <= other_reach.first) return false;
  // Such as two columns of a matrix, or two rows that overlap.
  std::vector<bool> is_taken(static_cast<std::size_t>(end - begin));
  for_each_element(a, [&](std::int64_t first, std::int64_t bytes) {
    for (std::int64_t i = 0; i < bytes; ++i) is_taken[static_cast<std::size_t>(first - begin + i)] = true;
  });
  bool shares = false;
  for_each_element(b, [&](std::int64_t first, std::int64_t bytes) {
    for (std::int64_t at = std::max(first, begin); at < std::min(first + bytes, end); ++at)
      shares = shares || is_taken[static_cast<std::size_t>(at - begin)];
  });
  return shares;
}

}  // namespace

bool requires_grad(const Tensor& tensor) {
  return tensor.defined() && tensor.autograd_meta() && tensor.autograd_meta()->requires_grad;
}

Tensor set_requires_grad(const Tensor& tensor, bool required) {
  require(tensor.defined(), "set_requires_grad: needs a defined tensor, got {}", tensor);
  require(!required || is_floating(tensor.dtype()),
          "set_requires_grad: only floating tensors have gradients, this is {}; use cast", tensor);
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
  require(leaf.defined(), "set_grad: needs a defined leaf, got {}", leaf);
  if (!gradient.defined()) return clear_grad(leaf);
  require(is_leaf(leaf) && is_floating(leaf.dtype()),
          "set_grad: {} is no floating leaf, and has no gradient; give a leaf", leaf);
  require(!requires_grad(gradient), "set_grad: gradient {} requires a gradient itself; give gradient.detach()",
          gradient);
  require(fits(gradient, leaf), "set_grad: gradient {} does not fit tensor {}; shapes and dtypes must agree", gradient,
          leaf);
  require(gradient.device() == leaf.device(), "set_grad: gradient {} is on {}, its tensor on {}; move it by to(device)",
          gradient, name_of(gradient.device()), name_of(leaf.device()));
  require(!repeats_elements(gradient),
          "set_grad: elements of gradient {} with strides {} share memory; give a copy by contiguous()", gradient,
          gradient.strides());
  require(!shares_elements(gradient, leaf),
          "set_grad: gradient {} is where the leaf's own elements are; give gradient.clone()", gradient);
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

void set_gradient_place(const Tensor& leaf, const Tensor& place) {
  require(is_leaf(leaf), "set_gradient_place: {} is not a leaf", leaf);
  if (place.defined()) {
    require(fits(place, leaf) && place.device() == leaf.device(),
            "set_gradient_place: {} on {} is no place for a gradient of {} on {}", place, name_of(place.device()), leaf,
            name_of(leaf.device()));
    require(place.is_dense() && reinterpret_cast<std::uintptr_t>(place.raw_data()) % kAlignment == 0,
            "set_gradient_place: {} must be dense and start at a multiple of {} bytes", place, kAlignment);
    require(!shares_elements(place, leaf), "set_gradient_place: {} is where the leaf's own elements are", place);
  }
  meta_of(leaf).place = place;
}

Tensor gradient_place(const Tensor& leaf) {
  const Meta* const meta = find_meta(leaf);
  return meta != nullptr ? meta->place : Tensor();
}

void replace_data(const Tensor& leaf, const Tensor& value) {
  require(is_leaf(leaf), "replace_data: {} was made by a recorded operation; call detach() first", leaf);
  require(!gradient_place(leaf).defined(),
          "replace_data: {} leaves its gradient in a place of its dtype and device, for DistributedDataParallel, say; "
          "make that afterwards",
          leaf);
  leaf.set_data(value);
  if (Meta* const meta = find_meta(leaf)) meta->leaf_node.reset();
  clear_grad(leaf);
}

void copy_gradient(const Tensor& gradient, const Tensor& place) {
  const bool is_there = gradient.raw_data() == place.raw_data() && gradient.dtype() == place.dtype() &&
                        gradient.strides() == place.strides();
  if (is_there || place.numel() == 0) return;
  if (gradient.dtype() == place.dtype()) {
    place.copy_from(gradient);
  } else {
    kernels::cast(gradient, Out(place));
  }
}

GradientCounts gradient_counts(const Tensor& leaf) {
  const Meta* const meta = find_meta(leaf);
  return meta != nullptr ? meta->counts : GradientCounts{};
}

void on_gradient_ready(const Tensor& leaf, GradientHook hook) {
  require(is_leaf(leaf), "on_gradient_ready: {} is not a leaf", leaf);
  require(hook != nullptr, "on_gradient_ready: the hook of {} is empty", leaf);
  meta_of(leaf).hooks.push_back(std::make_shared<const GradientHook>(std::move(hook)));
}

void on_gradient_final(const Tensor& leaf, GradientHook hook) {
  require(is_leaf(leaf), "on_gradient_final: {} is not a leaf", leaf);
  require(hook != nullptr, "on_gradient_final: the hook of {} is empty", leaf);
  meta_of(leaf).final_hooks.push_back(std::make_shared<const GradientHook>(std::move(hook)));
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
    node->module = detail::module_path();
    node->outputs = {{tensor.shape(), tensor.dtype()}};
    node->leaf = tensor;
    meta.leaf_node = node;
  }
  return {std::move(node), 0};
}

}  // namespace tandem::autograd
