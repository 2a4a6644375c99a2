// The walk over the tape: iterative, each node once, as soon as all that depends on it is done.
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/node.h"
#include "tandem/autograd/precision.h"
#include "tandem/core/describe.h"
#include "tandem/core/memory.h"
#include "tandem/core/module_scope.h"
#include "tandem/core/profiler.h"
#include "tandem/core/stream.h"
#include "tandem/core/work_graph.h"
#include "tandem/kernels/elementwise/add.h"

#include <algorithm>
#include <unordered_map>

namespace tandem::autograd {

namespace {

/// A gradient on its way: the first contribution is passed on as it is; from the second on there is a buffer of our
/// own.
struct PendingGradient {
  Tensor sum;
  bool owned = false;

  void add(Tensor contribution) {
    if (!sum.defined()) {
      sum = std::move(contribution);
    } else if (owned) {
      kernels::add(sum, contribution, Out(sum));
    } else {
      const Tensor total = empty_like(sum);
      kernels::add(sum, contribution, Out(total));
      sum = total;
      owned = true;
    }
  }
};

using PendingGradients = std::vector<PendingGradient>;  // of a node's outputs

struct NodeState {
  std::size_t waiting_for = 0;  // edges into this node that have not delivered
  PendingGradients gradients;
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

/// The sum with what earlier backward()s left, in f32: sums of many small parts lose them where each is rounded to
/// half.
Tensor add_to_old(const Tensor& old, const Tensor& part) {
  const MemoryTagScope scope(MemoryTag::gradients);
  const Tensor dense = old.is_dense() ? old : old.contiguous();  // of another's memory, which has gaps
  const Tensor sum = cast(dense, wide_dtype(old.dtype()));
  kernels::add(sum, cast(part, sum.dtype()), Out(sum));
  return sum;
}

/// The first gradient of a leaf, where it stays: in the leaf's place for it, or in memory that nobody else can see.
Tensor keep(const Tensor& leaf, const Tensor& place, const Tensor& gradient) {
  if (place.defined()) {
    copy_gradient(gradient, place);
    return place;
  }
  if (gradient.is_sole_owner() && gradient.is_dense() && gradient.strides() == leaf.strides()) {
    gradient.storage()->set_tag(MemoryTag::gradients);
    return gradient;
  }
  const MemoryTagScope scope(MemoryTag::gradients);
  const Tensor copy = empty_like(leaf);
  copy.copy_from(gradient);
  return copy;
}

void accumulate_into_leaf(const Tensor& leaf, const PendingGradients& arrived) {
  const Meta& meta = *find_meta(leaf);
  if (!meta.requires_grad) return;  // not any more, since the forward
  const Tensor old = meta.grad, &part = arrived.front().sum;
  Tensor gradient = old;
  if (part.defined() && old.defined()) {
    gradient = add_to_old(old, part);
  } else if (part.defined()) {
    const bool is_in_place = part.is_same(meta.place);  // written there by the kernel that made it
    gradient = is_in_place ? part : keep(leaf, meta.place, part);
  }
  if (!gradient.defined()) return;
  auto hooks = meta.hooks;  // a copy of the list: a hook may clear hooks
  hooks.insert(hooks.end(), meta.final_hooks.begin(), meta.final_hooks.end());
  for (const auto& hook : hooks) {
    gradient = (*hook)(std::move(gradient));
    require(gradient.defined(), "backward: a hook of leaf {} returned no gradient; it may return what it was given",
            leaf);
  }
  if (part.defined() || !gradient.is_same(old)) set_grad(leaf, gradient);
}

/// Where the gradient that flows along `edge` may be written at once, if that is where it will stay; else undefined.
Tensor place_for(const Edge& edge, const States& states) {
  const Tensor& leaf = edge.node->leaf;
  if (!leaf.defined() || grad(leaf).defined()) return {};
  const NodeState& state = states.at(edge.node.get());
  const bool is_only_part = state.waiting_for == 1 && !state.gradients.front().sum.defined();
  const Tensor place = gradient_place(leaf);
  return is_only_part && place.defined() && place.dtype() == leaf.dtype() ? place : Tensor();
}

/// Copies a gradient that was returned for several inputs where it is in the place of one of them: hooks of that leaf
/// may change it there, and it may be under way to other ranks, before the others are taken.
void separate_from_places(const std::vector<InputGradient>& inputs, std::vector<Tensor>& gradients) {
  for (std::size_t owner = 0; owner < inputs.size(); ++owner) {
    const Tensor& place = inputs[owner].place;
    if (!place.defined() || !gradients[owner].is_same(place)) continue;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (i != owner && gradients[i].defined() && gradients[i].raw_data() == place.raw_data())
        gradients[i] = gradients[i].clone();
  }
}

/// What the node's backward function makes of the gradients of its outputs: one gradient per input, all undefined where
/// nothing depends on this node.
std::vector<Tensor> input_gradients(const Node& node, PendingGradients arrived, const States& states) {
  std::vector<Tensor> grad_outputs;
  for (PendingGradient& gradient : arrived) grad_outputs.push_back(std::move(gradient.sum));
  if (std::none_of(grad_outputs.begin(), grad_outputs.end(), [](const Tensor& sum) { return sum.defined(); }))
    return std::vector<Tensor>(node.inputs.size());
  require(static_cast<bool>(node.backward),
          "backward: the tape behind '{}' was freed by an earlier backward(); pass retain_graph to keep it", node.name);
  std::vector<InputGradient> inputs;
  for (const Edge& edge : node.inputs) {
    inputs.emplace_back();
    if (!edge.node) continue;
    const auto& [shape, dtype] = edge.node->outputs[edge.output];
    inputs.back() = {true, shape, dtype, place_for(edge, states), edge.node->leaf.defined()};
  }
  const std::function<Tensor(const Tensor&)> place_of = [&states](const Tensor& tensor) {
    const Edge edge = gradient_edge(tensor);
    return states.contains(edge.node.get()) ? place_for(edge, states) : Tensor();
  };
  std::vector<Tensor> result = node.backward(BackwardContext(grad_outputs, inputs, place_of));
  require(result.size() == node.inputs.size(), "backward of '{}' returned {} gradients for {} inputs", node.name,
          result.size(), node.inputs.size());
  separate_from_places(inputs, result);
  return result;
}

/// Checks the gradients, hands each to the node that made the input, and adds to `ready` those that wait for no other.
void deliver(const Node& node, std::vector<Tensor> gradients, States& states,
             std::vector<std::shared_ptr<Node>>& ready) {
  // Last input first onto the stack: gradients of parameters are then final before the walk goes on to earlier layers.
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Edge& edge = node.inputs[i];
    if (!edge.node) continue;
    NodeState& state = states.at(edge.node.get());
    if (gradients[i].defined()) {
      const auto& [shape, dtype] = edge.node->outputs[edge.output];
      require(gradients[i].shape() == shape && gradients[i].dtype() == dtype,
              "backward of '{}' gave {} as gradient of input {}, which is {}{}", node.name, gradients[i], i,
              name_of(dtype), shape);
      state.gradients[edge.output].add(std::move(gradients[i]));
    }
    if (--state.waiting_for == 0) ready.push_back(edge.node);
  }
}

/// A 1 in the shape of a root of one element. It stays from call to call, so that no step of a training launches a
/// fill: whoever writes to a gradient looks whether others hold it. Of each thread, for the stream that it was made on.
Tensor one_on_gpu(const Tensor& root) {
  struct Kept {
    Tensor one;
    Stream stream;
  };
  static thread_local Kept kept;
  const Stream stream = current_stream(root.device());
  const bool fits = kept.one.defined() && kept.one.dtype() == root.dtype() && kept.stream == stream;
  if (!fits) {
    const MemoryTagScope scope(MemoryTag::workspace);
    const Tensor one = Tensor::full({}, 1.0, {.dtype = root.dtype(), .device = root.device()});
    if (WorkGraph::is_recording()) return one.view(root.shape());  // the graph's memory
    kept = {one, stream};
  }
  WorkGraph::with_each_launch([one = kept.one] {});  // a graph keeps it, too
  return kept.one.view(root.shape());
}

Tensor checked_seed(const Tensor& root, const Tensor& grad_root) {
  require(root.defined(), "backward: needs a defined root, got {}", root);
  require(requires_grad(root),
          "backward: {} does not depend on any tensor that requires a gradient; mark one by set_requires_grad before "
          "computing it, and not under NoGrad",
          root);
  Tensor seed = grad_root;
  if (!seed.defined()) {
    require(root.numel() == 1, "backward: {} has more than one element; pass grad_root", root);
    seed = root.device().type == DeviceType::cuda ? one_on_gpu(root) : Tensor::full(root.shape(), 1.0, root.options());
  }
  require(seed.shape() == root.shape() && seed.dtype() == root.dtype(), "backward: grad_root {} does not fit root {}",
          seed, root);
  return seed;
}

}  // namespace

void backward(const Tensor& root, const Tensor& grad_root, BackwardOptions options) {
  Tensor seed = checked_seed(root, grad_root);
  const NoGrad no_grad;
  const Edge start = gradient_edge(root);
  States states = count_edges(start.node.get());
  states[start.node.get()].gradients[start.output].add(std::move(seed));
  std::vector<std::shared_ptr<Node>> ready{start.node};
  while (!ready.empty()) {
    const std::shared_ptr<Node> node = std::move(ready.back());
    ready.pop_back();
    const detail::PathScope scope(node->module);
    const ProfileRange range(
        [&] { return fmt::format("backward {} {}", node->name, to_string(node->outputs.front().shape)); });
    PendingGradients arrived = std::move(states.at(node.get()).gradients);
    if (node->leaf.defined()) {
      accumulate_into_leaf(node->leaf, arrived);
      continue;
    }
    std::vector<Tensor> gradients = input_gradients(*node, std::move(arrived), states);
    if (!options.retain_graph) node->backward = nullptr;
    deliver(*node, std::move(gradients), states, ready);
  }
}

}  // namespace tandem::autograd
