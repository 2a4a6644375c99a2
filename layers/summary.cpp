// Looking at a network: what it computes, and what that takes.
#include "tandem/layers/summary.h"

#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/memory.h"
#include "tandem/layers/activation.h"
#include "tandem/layers/mode_scope.h"

#include <map>
#include <optional>

namespace tandem::layers {

namespace {

/// What the calls of a layer were.
struct Calls {
  int count = 0;
  Shape output;
  double flops = 0;
};

std::int64_t bytes_of(const NamedTensors& tensors) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += tensor.numel() * size_of(tensor.dtype());
  return bytes;
}

Tensor zeros_for(const Module& module, const Shape& input) {
  const MemoryTagScope scope(MemoryTag::data);
  const NamedTensors parameters = module.named_parameters();
  TensorOptions like_parameters{.layout = Layout::channels_last};
  if (!parameters.empty()) like_parameters = parameters.front().second.options(Layout::channels_last);
  return Tensor::zeros(input, like_parameters);
}

/// Hooks that are removed at the end of the scope.
class CallCounter {
 public:
  explicit CallCounter(Module& module) {
    for (const auto& [name, part] : module.named_modules()) {
      Calls& calls = calls_[part];
      if (calls_.size() == handles_.size()) continue;  // a module of several names
      handles_.push_back(part->register_forward_hook([&calls](Module& self, const Tensor& in, const Tensor& out) {
        ++calls.count;
        calls.output = out.shape();
        calls.flops += self.flops(in.shape(), out.shape());
      }));
    }
  }
  ~CallCounter() {
    for (RemovableHandle& handle : handles_) handle.remove();
  }
  CallCounter(const CallCounter&) = delete;
  CallCounter& operator=(const CallCounter&) = delete;

  const Calls& of(const Module* module) const { return calls_.at(module); }

 private:
  std::map<const Module*, Calls> calls_;
  std::vector<RemovableHandle> handles_;
};

/// Bytes that a recorded forward pass keeps.
std::int64_t kept_bytes(Module& module, const Tensor& input) {
  const auto activations = [&] { return memory_stats(input.device()).current_of(MemoryTag::activations); };
  const std::int64_t before = activations();
  const Tensor output = module(input);
  return activations() - before;
}

/// The same in training mode, leaving statistics as they are; nothing where the network refuses this batch.
std::optional<std::int64_t> kept_in_training(Module& module, const Tensor& input) {
  const ModeScope same_modes(module);
  const SameBuffers same_buffers(module);
  module.train();
  module.apply([](Module& part) {
    if (dynamic_cast<Dropout*>(&part) != nullptr) part.eval();
  });
  try {
    return kept_bytes(module, input);
  } catch (const Error&) {  // batch norm of one value, say
    return std::nullopt;
  }
}

}  // namespace

ModelSummary summarize(Module& module, const Shape& input) {
  const NoObservers unseen(module);
  const Tensor zeros = zeros_for(module, input);
  ModelSummary result;
  {
    const ModeScope evaluating(module, false);
    const CallCounter counter(module);
    const autograd::NoGrad no_grad;
    module(zeros);
    for (const auto& [name, part] : module.named_modules()) {
      if (part->named_modules().size() > 1) continue;  // its children have their own lines
      const Calls& calls = counter.of(part);
      result.layers.push_back({.name = name,
                               .what = part->describe(),
                               .calls = calls.count,
                               .output = calls.output,
                               .parameters = part->parameter_count(),
                               .flops = calls.flops});
    }
    std::map<const Module*, bool> added;
    for (const auto& [name, part] : module.named_modules()) {
      if (!std::exchange(added[part], true)) result.flops += counter.of(part).flops;
    }
  }
  const auto kept = kept_in_training(module, zeros);
  const ModeScope same_modes(module, false);
  result.activation_bytes = kept.has_value() ? *kept : kept_bytes(module, zeros);
  const NamedTensors parameters = module.named_parameters();
  for (const auto& [name, parameter] : parameters) {
    result.parameters += parameter.numel();
    if (!autograd::requires_grad(parameter)) result.frozen_parameters += parameter.numel();
  }
  result.parameter_tensors = static_cast<std::int64_t>(parameters.size());
  result.parameter_bytes = bytes_of(parameters);
  result.buffer_bytes = bytes_of(module.named_buffers());
  return result;
}

std::string summary(Module& module, const Shape& input) { return to_string(summarize(module, input)); }

}  // namespace tandem::layers
