// Module: walking the tree, modes and errors with names. State dicts are in state_dict.cpp.
#include "tandem/layers/module.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/device_query.h"
#include "tandem/core/profiler.h"

namespace tandem::layers {

namespace {

/// An Error on its way up through the modules, collecting their names.
class LayerError : public Error {
 public:
  LayerError(const std::string& path, const std::string& message)
      : Error(path.empty() ? message : fmt::format("layer {}: {}", path, message)), path_(path), message_(message) {}
  const std::string& path() const { return path_; }
  const std::string& message() const { return message_; }

 private:
  std::string path_, message_;
};

std::string join(const std::string& parent, const std::string& child) {
  return parent.empty() || child.empty() ? parent + child : parent + "." + child;
}

}  // namespace

Tensor Module::operator()(const Tensor& input) {
  return in_context([&] {
    Tensor output = forward(input);
    if (observer_) observer_(output);
    return output;
  });
}

Tensor Module::in_context(const std::function<Tensor()>& compute) {
  const ProfileRange range([&] { return fmt::format("forward {}", describe()); });
  try {
    return compute();
  } catch (const LayerError& error) {
    throw LayerError(join(name_, error.path()), error.message());
  } catch (const Error& error) {
    throw LayerError(name_, error.what());
  }
}

std::vector<std::pair<std::string, Module*>> Module::named_modules() {
  std::vector<std::pair<std::string, Module*>> result{{"", this}};
  for (const auto& [child_name, child] : children_) {
    for (const auto& [name, module] : child->named_modules()) result.emplace_back(join(child_name, name), module);
  }
  return result;
}

NamedTensors Module::named_parameters() const {
  NamedTensors result;
  for (const auto& [name, parameter] : parameters_) result.emplace_back(name, *parameter);
  for (const auto& [child_name, child] : children_) {
    for (const auto& [name, parameter] : child->named_parameters())
      result.emplace_back(join(child_name, name), parameter);
  }
  return result;
}

NamedTensors Module::named_buffers() const {
  NamedTensors result;
  for (const auto& [name, buffer] : buffers_) result.emplace_back(name, *buffer);
  for (const auto& [child_name, child] : children_) {
    for (const auto& [name, buffer] : child->named_buffers()) result.emplace_back(join(child_name, name), buffer);
  }
  return result;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> result;
  for (const auto& [name, parameter] : named_parameters()) result.push_back(parameter);
  return result;
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const Tensor& parameter : parameters()) count += parameter.numel();
  return count;
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& [name, child] : children_) child->train(on);
}

void Module::to(DType dtype) {
  require(is_floating(dtype), "to: a module's dtype is f64, f32, f16 or bf16, not {}", name_of(dtype));
  replace_tensors([dtype](const Tensor& tensor, const Module&) { return autograd::cast(tensor, dtype); });
}

void Module::set_precision(autograd::Precision precision) {
  replace_tensors([precision](const Tensor& tensor, const Module& module) {
    return autograd::cast(tensor, autograd::parameter_dtype(module.op_kind(), precision));
  });
}

void Module::to(Device device) {
  check_device(device);
  replace_tensors([device](const Tensor& tensor, const Module&) { return tensor.to(device); });
}

void Module::replace_tensors(const std::function<Tensor(const Tensor&, const Module&)>& convert) {
  const MemoryTagScope scope(MemoryTag::parameters);
  const autograd::NoGrad no_grad;
  for (const auto& [name, module] : named_modules()) {
    for (const auto& [parameter_name, parameter] : module->parameters_) {
      const Tensor old = parameter->detach(), converted = convert(old, *module);
      if (converted.is_same(old)) continue;
      const bool wanted = autograd::requires_grad(*parameter);
      *parameter = autograd::set_requires_grad(converted, wanted);
    }
    for (const auto& [buffer_name, buffer] : module->buffers_) {
      if (is_floating(buffer->dtype())) *buffer = convert(*buffer, *module);
    }
  }
}

void Module::zero_grad() const {
  for (const Tensor& parameter : parameters()) autograd::clear_grad(parameter);
}

void Module::set_random_state(const std::shared_ptr<RandomState>& state) {
  std::uint32_t layer = 0;
  for (const auto& [name, module] : named_modules()) {
    if (module->take_random_state(state, layer)) ++layer;
  }
}

void Module::register_parameter(std::string name, Tensor& member) {
  if (member.defined()) parameters_.emplace_back(std::move(name), &member);
}

void Module::register_buffer(std::string name, Tensor& member) { buffers_.emplace_back(std::move(name), &member); }

void Module::register_module(std::string name, Module& member) {
  member.name_ = name;
  children_.emplace_back(std::move(name), &member);
}

}  // namespace tandem::layers
