// Looking at a network: what it computes, and what that takes.
#include "tandem/layers/summary.h"

#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/describe.h"
#include "tandem/core/memory.h"
#include "tandem/core/work_counter.h"
#include "tandem/layers/dropout.h"
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

/// What each module does while this lives, by hooks that are removed at its end. Work between two modules is that of
/// the one that calls them.
class CallCounter {
 public:
  explicit CallCounter(Module& module) {
    for (const auto& [name, part] : module.named_modules()) {
      Calls& calls = calls_[part];
      handles_.push_back(part->register_forward_pre_hook(
          [this](Module&, const Tensor&) { open_.push_back({.begin = work_.flops()}); }));
      handles_.push_back(part->register_forward_hook(
          [this, &calls](Module&, const Tensor&, const Tensor& out) { close(calls, out.shape()); }));
    }
  }
  ~CallCounter() {
    for (RemovableHandle& handle : handles_) handle.remove();
  }
  CallCounter(const CallCounter&) = delete;
  CallCounter& operator=(const CallCounter&) = delete;

  const Calls& of(const Module* module) const { return calls_.at(module); }
  double flops() const { return work_.flops(); }

 private:
  /// A call under way.
  struct Open {
    double begin = 0, of_inner_calls = 0;
  };

  void close(Calls& calls, const Shape& output) {
    const Open call = open_.back();
    open_.pop_back();
    const double flops = work_.flops() - call.begin;
    if (!open_.empty()) open_.back().of_inner_calls += flops;
    ++calls.count;
    calls.output = output;
    calls.flops += flops - call.of_inner_calls;
  }

  WorkCounter work_;
  std::vector<Open> open_;
  std::map<const Module*, Calls> calls_;
  std::vector<RemovableHandle> handles_;
};

using Forward = std::function<Tensor()>;

/// Where its parameters are.
Device device_of(const Module& module) {
  const NamedTensors parameters = module.named_parameters();
  return parameters.empty() ? Device{} : parameters.front().second.device();
}

/// Bytes that a recorded forward pass keeps.
std::int64_t kept_bytes(const Module& module, const Forward& forward) {
  const Device device = device_of(module);
  const auto activations = [&] { return memory_stats(device).current_of(MemoryTag::activations); };
  const std::int64_t before = activations();
  const Tensor output = forward();
  return activations() - before;
}

/// Of the parameters that are not a child's.
std::int64_t own_parameter_count(const Module& module) {
  std::int64_t count = 0;
  for (const auto& [name, parameter] : module.named_parameters())
    if (name.find('.') == std::string::npos) count += parameter.numel();
  return count;
}

/// The same in training mode, leaving statistics as they are; nothing where the network refuses this batch.
std::optional<std::int64_t> kept_in_training(Module& module, const Forward& forward) {
  const ModeScope same_modes(module);
  const SameBuffers same_buffers(module);
  module.train();
  module.apply([](Module& part) {
    if (dynamic_cast<RandomLayer*>(&part) != nullptr) part.eval();
  });
  try {
    return kept_bytes(module, forward);
  } catch (const Error&) {  // batch norm of one value, say
    return std::nullopt;
  }
}

}  // namespace

ModelSummary summarize(Module& module, const std::function<Tensor()>& forward) {
  require(forward != nullptr, "summarize: got an empty function; give one that calls the network");
  const NoObservers unseen(module);
  ModelSummary result;
  {
    const ModeScope evaluating(module, false);
    const CallCounter counter(module);
    const autograd::NoGrad no_grad;
    forward();
    for (const auto& [name, part] : module.named_modules()) {
      const std::int64_t own_parameters = own_parameter_count(*part);
      const Calls& calls = counter.of(part);
      const bool has_parts = part->named_modules().size() > 1;
      if (own_parameters == 0 && calls.flops == 0.0 && has_parts) continue;  // its parts have their own lines
      result.layers.push_back({.name = name,
                               .what = part->describe(),
                               .calls = calls.count,
                               .output = calls.output,
                               .parameters = own_parameters,
                               .flops = calls.flops});
    }
    result.flops = counter.flops();
  }
  const auto kept = kept_in_training(module, forward);
  const ModeScope same_modes(module, false);
  result.activation_bytes = kept.has_value() ? *kept : kept_bytes(module, forward);
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

ModelSummary summarize(Module& module, const Tensor& input) {
  return summarize(module, [&] { return module(input); });
}

ModelSummary summarize(Module& module, const Shape& input) {
  const Tensor zeros = zeros_for(module, input);
  try {
    return summarize(module, zeros);
  } catch (const Error& error) {
    fail(
        "{}; summarize() gave the network zeros, {}: where it takes integers, give a tensor, and where it takes more "
        "than one input, a function that calls it",
        error.what(), zeros);
  }
}

std::string summary(Module& module, const Shape& input) { return to_string(summarize(module, input)); }

std::string summary(Module& module, const Tensor& input) { return to_string(summarize(module, input)); }

std::string summary(Module& module, const std::function<Tensor()>& forward) {
  return to_string(summarize(module, forward));
}

}  // namespace tandem::layers
