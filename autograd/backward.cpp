// The walk over the tape: iterative, each node once, as soon as all that depends on it is done.
#include "autograd/functions/cast.h"
#include "autograd/node.h"
#include "autograd/precision.h"
#include "core/describe.h"
#include "core/profile.h"
#include "kernels/elementwise/add.h"

#include <unordered_map>

namespace tandem::autograd {

namespace {

/// A gradient on its way: the first contribution is passed on as it is; from the second on there is a buffer of our
/// own.
struct PendingGradient {
  Tensor sum;
  bool owned = false;

  void add(const Tensor& contribution) {
    if (!sum.defined()) {
      sum = contribution;
    } else if (owned) {
      kernels::add(sum, contribution, sum);
    } else {
      const Tensor total = empty_like(sum);
      kernels::add(sum, contribution, total);
      sum = total;
      owned = true;
    }
  }
};

struct NodeState {
  std::size_t waiting_for = 0;  // edges into this node that have not delivered
  std::vector<PendingGradient> gradients;
};

using States = std::unordered_map<Node*, NodeState>;

States count_edges(Node* root) {
  States states;
  std::vector<Node*> pending{root};
  states[root].gradients.resize(root->outputs.size());
  while (!pending.empty()) {
    Node* const node = pending.back();
    pending.pop_back();
    for (const Edge& edge : node->inputs) {
      if (!edge.node) continue;
      const auto [entry, is_new] = states.try_emplace(edge.node.get());
      ++entry->second.waiting_for;
      if (!is_new) continue;
      entry->second.gradients.resize(edge.node->outputs.size());
      pending.push_back(edge.node.get());
    }
  }
  return states;
}

/// Adds to what earlier backward()s left, in f32: sums of many small parts lose them where each is rounded to half.
void add_to_leaf(const Tensor& leaf, const Tensor& old, const Tensor& part) {
  const MemoryTagScope scope(MemoryTag::gradients);
  const Tensor sum = cast(old, wide_dtype(old.dtype()));
  kernels::add(sum, cast(part, sum.dtype()), sum);
  set_grad(leaf, sum);
}

void accumulate_into_leaf(const Tensor& leaf, PendingGradient& gradient) {
  if (gradient.sum.defined()) {
    const Tensor old = grad(leaf);
    if (old.defined()) {
      add_to_leaf(leaf, old, gradient.sum);
    } else {
      // Keep the tensor itself only where nobody else can see or change its elements.
      const bool ours =
          gradient.sum.is_sole_owner() && gradient.sum.is_dense() && gradient.sum.strides() == leaf.strides();
      Tensor stored = gradient.sum;
      if (!ours) {
        const MemoryTagScope scope(MemoryTag::gradients);
        stored = empty_like(leaf);
        stored.copy_from(gradient.sum);
      }
      stored.storage()->set_tag(MemoryTag::gradients);
      set_grad(leaf, stored);
    }
  }
  const auto hooks = find_meta(leaf)->hooks;  // a copy: a hook may clear hooks
  for (const GradientHook& hook : hooks) hook(leaf);
}

std::vector<Tensor> call_backward(Node& node, std::vector<PendingGradient>& gradients) {
  require(static_cast<bool>(node.backward),
          "backward: the tape behind '{}' was freed by an earlier backward(); pass retain_graph to keep it", node.name);
  std::vector<Tensor> grad_outputs;
  grad_outputs.reserve(gradients.size());
  for (PendingGradient& gradient : gradients) grad_outputs.push_back(std::move(gradient.sum));
  const auto needed = std::make_unique<bool[]>(node.inputs.size());
  for (std::size_t i = 0; i < node.inputs.size(); ++i) needed[i] = node.inputs[i].node != nullptr;
  std::vector<Tensor> result = node.backward(BackwardContext(grad_outputs, {needed.get(), node.inputs.size()}));
  require(result.size() == node.inputs.size(), "backward of '{}' returned {} gradients for {} inputs", node.name,
          result.size(), node.inputs.size());
  return result;
}

}  // namespace

void backward(const Tensor& root, const Tensor& grad_root, BackwardOptions options) {
  require(requires_grad(root), "backward: {} does not depend on any tensor that requires a gradient", root);
  Tensor seed = grad_root;
  if (!seed.defined()) {
    require(root.numel() == 1, "backward: {} has more than one element; pass grad_root", root);
    seed = empty_like(root);
    seed.fill(1.0);
  }
  require(seed.shape() == root.shape() && seed.dtype() == root.dtype(), "backward: grad_root {} does not fit root {}",
          seed, root);

  const NoGrad no_grad;
  const Edge start = gradient_edge(root);
  States states = count_edges(start.node.get());
  states[start.node.get()].gradients[start.output].add(seed);
  seed = Tensor();
  std::vector<std::shared_ptr<Node>> ready{start.node};
  while (!ready.empty()) {
    const std::shared_ptr<Node> node = std::move(ready.back());
    ready.pop_back();
    const ProfileRange range(
        [&] { return fmt::format("backward {} {}", node->name, to_string(node->outputs.front().shape)); });
    auto gradients = std::move(states.at(node.get()).gradients);
    if (node->leaf.defined()) {
      accumulate_into_leaf(node->leaf, gradients.front());
      continue;
    }
    bool any = false;
    for (const PendingGradient& gradient : gradients) any = any || gradient.sum.defined();
    std::vector<Tensor> grad_inputs(node->inputs.size());
    if (any) grad_inputs = call_backward(*node, gradients);
    if (!options.retain_graph) node->backward = nullptr;

    // Last input first onto the stack: gradients of parameters are then final before the walk goes on to earlier
    // layers.
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      const Edge& edge = node->inputs[i];
      if (!edge.node) continue;
      NodeState& state = states.at(edge.node.get());
      if (grad_inputs[i].defined()) {
        const auto& [shape, dtype] = edge.node->outputs[edge.output];
        require(grad_inputs[i].shape() == shape && grad_inputs[i].dtype() == dtype,
                "backward of '{}' gave {} as gradient of input {}, which is {}{}", node->name, grad_inputs[i], i,
                name_of(dtype), shape);
        state.gradients[edge.output].add(grad_inputs[i]);
        grad_inputs[i] = Tensor();
      }
      if (--state.waiting_for == 0) ready.push_back(edge.node);
    }
  }
}

}  // namespace tandem::autograd
