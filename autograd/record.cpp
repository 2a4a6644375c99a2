// Putting operations on the tape.
#include "tandem/autograd/record.h"

#include "tandem/autograd/node.h"
#include "tandem/core/describe.h"
#include "tandem/core/module_scope.h"
#include "tandem/core/recording.h"

#include <algorithm>

namespace tandem::autograd {

bool grad_enabled() { return tandem::detail::recording; }
GradMode::GradMode(bool enabled) : previous_(tandem::detail::recording) { tandem::detail::recording = enabled; }
GradMode::~GradMode() { tandem::detail::recording = previous_; }

SavedTensor::SavedTensor(const Tensor& tensor) {
  if (!tensor.defined()) return;
  tensor_ = tensor.detach();  // without metadata: an output saved by its own node must not keep that node alive
  version_ = tensor.storage()->version();
}

Tensor SavedTensor::get() const {
  require(!tensor_.defined() || tensor_.storage()->version() == version_,
          "backward: {} was changed in place after it was saved for this gradient; change a clone instead", tensor_);
  return tensor_;
}

Tensor BackwardContext::place_or_memory(const InputGradient& input, Layout layout) const {
  if (!input.needed) return {};
  if (input.place.defined() && input.place.is_dense(layout)) return input.place;
  const auto given = std::find_if(grad_outputs_.begin(), grad_outputs_.end(),
                                  [](const Tensor& gradient) { return gradient.defined(); });
  const MemoryTagScope scope(input.of_leaf ? MemoryTag::gradients : current_memory_tag());
  return Tensor::empty(input.shape, {input.dtype, layout, given->device()});
}

Tensor BackwardContext::new_gradient(std::size_t index, Layout layout) const {
  return place_or_memory(input(index), layout);
}

Tensor BackwardContext::new_gradient_of(const Tensor& tensor, Layout layout) const {
  if (!requires_grad(tensor)) return {};
  return place_or_memory(
      {true, tensor.shape(), tensor.dtype(), place_of_(tensor), tensor.autograd_meta()->operation().empty()}, layout);
}

bool should_record(std::initializer_list<Tensor> inputs) {
  return grad_enabled() &&
         std::any_of(inputs.begin(), inputs.end(), [](const Tensor& input) { return requires_grad(input); });
}

std::vector<Tensor> record(std::string_view name, const std::vector<Tensor>& inputs, std::vector<Tensor> outputs,
                           BackwardFunction backward, const std::shared_ptr<Producer>& producer) {
  if (!grad_enabled() || std::none_of(inputs.begin(), inputs.end(), requires_grad)) return outputs;
  auto node = std::make_shared<Node>();
  node->name = name;
  node->module = detail::module_path();
  node->inputs.reserve(inputs.size());
  node->outputs.reserve(outputs.size());
  for (const Tensor& input : inputs) node->inputs.push_back(gradient_edge(input));
  node->backward = std::move(backward);
  node->producer = producer;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    auto& slot = outputs[i].autograd_meta();
    require(!slot, "record: output {} of {} already has gradient metadata; return a new tensor or detach()", i, name);
    node->outputs.push_back({outputs[i].shape(), outputs[i].dtype()});
    auto meta = std::make_shared<Meta>();
    meta->requires_grad = true;
    meta->made_by = {node, i};
    slot = std::move(meta);
  }
  return outputs;
}

Tensor record(std::string_view name, const std::vector<Tensor>& inputs, const Tensor& output, BackwardFunction backward,
              const std::shared_ptr<Producer>& producer) {
  return record(name, inputs, std::vector<Tensor>{output}, std::move(backward), producer).front();
}

std::shared_ptr<Producer> producer_of(const Tensor& tensor) {
  const Meta* const meta = find_meta(tensor);
  return meta != nullptr && meta->made_by.node ? meta->made_by.node->producer.lock() : nullptr;
}

Node::~Node() {
  // A chain of thousands of nodes must not unwind by recursion: take the last owners of the inputs apart one by one.
  std::vector<std::shared_ptr<Node>> pending;
  const auto collect_inputs = [&](Node& node) {
    for (Edge& edge : node.inputs) {
      if (edge.node) pending.push_back(std::move(edge.node));
    }
  };
  collect_inputs(*this);
  while (!pending.empty()) {
    const std::shared_ptr<Node> node = std::move(pending.back());
    pending.pop_back();
    if (node.use_count() == 1) collect_inputs(*node);
  }
}

}  // namespace tandem::autograd
