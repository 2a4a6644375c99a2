// Module: walking the tree, modes and errors with names. State dicts are in state_dict.cpp.
#include "tandem/layers/module.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/device_query.h"
#include "tandem/core/module_scope.h"
#include "tandem/core/profiler.h"
#include "tandem/core/suggest.h"

#include <cxxabi.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <typeinfo>

namespace tandem::layers {

namespace {

bool is_unchanged_by(const std::function<Tensor(const Tensor&, const Module&)>& convert, const Tensor& tensor,
                     const Module& module) {
  const Tensor old = tensor.detach();
  return convert(old, module).is_same(old);
}

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

/// A tensor that is to be a parameter, marked as one.
Tensor trained(std::string_view function, std::string_view name, const Tensor& value) {
  require(value.defined() && is_floating(value.dtype()) && autograd::is_leaf(value),
          "{}: '{}' must be a floating tensor that no recorded operation made, got {}; what is not trained is a buffer",
          function, name, tandem::describe(value));
  value.storage()->set_tag(MemoryTag::parameters);
  return autograd::set_requires_grad(value);
}

/// Whether `part` is `whole` or one of its parts.
bool contains(Module& whole, const Module& part) {
  const auto modules = whole.named_modules();
  return std::any_of(modules.begin(), modules.end(), [&](const auto& named) { return named.second == &part; });
}

std::string join(const std::string& parent, const std::string& child) {
  return parent.empty() || child.empty() ? parent + child : parent + "." + child;
}

/// Without those that are there under another name before.
NamedTensors with_first_names(const NamedTensors& all) {
  NamedTensors result;
  for (const auto& named : all) {
    const bool known = std::any_of(result.begin(), result.end(),
                                   [&](const auto& earlier) { return earlier.second.is_same(named.second); });
    if (!known) result.push_back(named);
  }
  return result;
}

void mark(const Tensor& parameter, bool required) {
  autograd::set_requires_grad(parameter, required);
  if (!required) autograd::clear_grad(parameter);
}

}  // namespace

Tensor Module::operator()(const Tensor& input) {
  return in_context([&] {
    Tensor output = hooks_ == nullptr || hooks_->empty() ? forward(input) : forward_with_hooks(input);
    if (observer_) observer_(output);
    return output;
  });
}

Tensor Module::forward(const Tensor& /*input*/) {
  fail("{} has no forward(input): override it, or call the function that takes this module's inputs", describe());
}

Tensor Module::in_context(const std::function<Tensor()>& compute) {
  const detail::PartScope scope(name_);
  const ProfileRange range([&] { return fmt::format("forward {}", describe()); });
  try {
    return compute();
  } catch (const LayerError& error) {
    throw LayerError(join(name_, error.path()), error.message());
  } catch (const Error& error) {
    throw LayerError(name_, error.what());
  }
}

Tensor Module::forward_with_hooks(const Tensor& input) {
  const ForwardHooks now = *hooks_;  // hooks may add and remove hooks
  Tensor taken = input;
  for (const auto& [id, hook] : now.before) {
    if (const Tensor other = (*hook)(*this, taken); other.defined()) taken = other;
  }
  Tensor output = forward(taken);
  for (const auto& [id, hook] : now.after) {
    if (const Tensor other = (*hook)(*this, taken, output); other.defined()) output = other;
  }
  return output;
}

ForwardHooks& Module::hooks() {
  if (hooks_ == nullptr) hooks_ = std::make_shared<ForwardHooks>();
  return *hooks_;
}

RemovableHandle Module::add_hook(ForwardHook hook) {
  ForwardHooks& all = hooks();
  all.after.emplace_back(all.next, std::make_shared<const ForwardHook>(std::move(hook)));
  return {hooks_, all.next++};
}

RemovableHandle Module::add_hook(ForwardPreHook hook) {
  ForwardHooks& all = hooks();
  all.before.emplace_back(all.next, std::make_shared<const ForwardPreHook>(std::move(hook)));
  return {hooks_, all.next++};
}

void Module::apply(const std::function<void(Module&)>& function) {
  auto modules = named_modules();  // parents before their children, each once
  std::reverse(modules.begin(), modules.end());
  for (const auto& [name, module] : modules) function(*module);
}

void Module::requires_grad(bool required) {
  for (const Tensor& parameter : parameters()) mark(parameter, required);
}

void Module::requires_grad(std::string_view name, bool required) {
  Module* module = name.empty() ? nullptr : this;  // by any of its names, of which named_modules() has the first
  for (std::string_view rest = name; module != nullptr && !rest.empty();) {
    const std::string_view first = rest.substr(0, rest.find('.'));
    const auto& children = module->children_;
    const auto child = std::find_if(children.begin(), children.end(), [&](const auto& c) { return c.first == first; });
    module = child == children.end() ? nullptr : child->second;
    rest.remove_prefix(std::min(first.size() + 1, rest.size()));
  }
  if (module != nullptr) return module->requires_grad(required);
  std::vector<std::string> names;
  for (const auto& [module_name, part] : named_modules()) {
    if (!module_name.empty()) names.push_back(module_name);
  }
  for (const auto& [parameter_name, parameter] : all_parameters()) {
    if (parameter_name == name) return mark(parameter, required);
    names.push_back(parameter_name);
  }
  const std::string near = nearest_name(name, names);
  fail(
      "requires_grad: '{}' is neither a module nor a parameter of this {}{}; named_modules() and named_parameters() "
      "list them",
      name, describe(), near.empty() ? std::string() : fmt::format(": did you mean '{}'?", near));
}

std::vector<std::pair<std::string, Module*>> Module::named_modules() {
  std::vector<std::pair<std::string, Module*>> result;
  std::set<const Module*> seen;
  const std::function<void(const std::string&, Module&)> add = [&](const std::string& name, Module& module) {
    if (!seen.insert(&module).second) return;
    result.emplace_back(name, &module);
    for (const auto& [child_name, child] : module.children_) add(join(name, child_name), *child);
  };
  add("", *this);
  return result;
}

NamedTensors Module::all_parameters() const {
  NamedTensors result;
  for (const auto& [name, parameter] : parameters_) result.emplace_back(name, *parameter);
  for (const auto& [child_name, child] : children_) {
    for (const auto& [name, parameter] : child->all_parameters())
      result.emplace_back(join(child_name, name), parameter);
  }
  return result;
}

NamedTensors Module::all_buffers() const {
  NamedTensors result;
  for (const auto& [name, buffer] : buffers_) result.emplace_back(name, *buffer);
  for (const auto& [child_name, child] : children_) {
    for (const auto& [name, buffer] : child->all_buffers()) result.emplace_back(join(child_name, name), buffer);
  }
  return result;
}

NamedTensors Module::named_parameters() const { return with_first_names(all_parameters()); }

NamedTensors Module::named_buffers() const { return with_first_names(all_buffers()); }

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> result;
  for (const auto& [name, parameter] : named_parameters()) result.push_back(parameter);
  return result;
}

std::vector<Tensor> Module::parameters(std::string_view pattern) const {
  const std::string text(pattern);
  std::vector<Tensor> result;
  std::vector<std::string> names;
  for (const auto& [name, parameter] : named_parameters()) {
    if (::fnmatch(text.c_str(), name.c_str(), 0) == 0) result.push_back(parameter);
    names.push_back(name);
  }
  if (!result.empty()) return result;
  const std::string near = nearest_name(pattern, names);
  constexpr std::size_t kShown = 8;
  const std::string more = names.size() > kShown ? ", ..." : "";
  names.resize(std::min(names.size(), kShown));
  fail("'{}' matches no parameter of this {}{} (its parameters: {}{})", pattern, describe(),
       near.empty() ? std::string() : fmt::format(": did you mean '{}'?", near), fmt::join(names, ", "), more);
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const Tensor& parameter : parameters()) count += parameter.numel();
  return count;
}

std::string Module::describe() const {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status), std::free);
  std::string whole = status == 0 ? name.get() : typeid(*this).name();
  whole.resize(std::min(whole.find('<'), whole.size()));  // without template arguments
  const std::size_t scope = whole.rfind("::");
  return scope == std::string::npos ? whole : whole.substr(scope + 2);
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
  const auto modules = named_modules();
  for (const auto& [name, module] : modules) {  // before anything is changed
    for (const auto& [parameter_name, parameter] : module->parameters_)
      require(!autograd::gradient_place(*parameter).defined() || is_unchanged_by(convert, *parameter, *module),
              "to: the gradient of parameter {}{}{} has a place, of a DistributedDataParallel or of steps as CUDA "
              "graphs; make "
              "those after to() or set_precision()",
              name, name.empty() ? "" : ".", parameter_name);
  }
  for (const auto& [name, module] : modules) {
    for (const auto& [parameter_name, parameter] : module->parameters_) {
      const Tensor old = parameter->detach(), converted = convert(old, *module);
      if (!converted.is_same(old)) autograd::replace_data(*parameter, converted);
    }
    for (const auto& [buffer_name, buffer] : module->buffers_) {
      if (is_floating(buffer->dtype())) buffer->set_data(convert(buffer->detach(), *module));
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

void Module::check_new_name(std::string_view name) const {
  require(!name.empty() && name.find('.') == std::string_view::npos,
          "register: '{}' cannot be the name of a part of a module: names are not empty and have no dots", name);
  const auto has_name = [name](const auto& part) { return part.first == name; };
  require(std::none_of(parameters_.begin(), parameters_.end(), has_name) &&
              std::none_of(buffers_.begin(), buffers_.end(), has_name) &&
              std::none_of(children_.begin(), children_.end(), has_name),
          "register: this module has a part of the name '{}' already; choose another", name);
}

void Module::register_parameter(std::string name, Tensor& member) {
  check_new_name(name);
  if (!member.defined()) return;
  member = trained("register_parameter", name, member);
  parameters_.emplace_back(std::move(name), &member);
}

void Module::register_buffer(std::string name, Tensor& member) {
  require(member.defined(), "register_buffer: '{}' is undefined; give a tensor, such as Tensor::zeros()", name);
  check_new_name(name);
  buffers_.emplace_back(std::move(name), &member);
}

void Module::register_module(std::string name, Module& member) {
  check_new_name(name);
  require(!contains(member, *this), "register_module('{}'): a module cannot be a part of itself", name);
  member.name_ = name;
  children_.emplace_back(std::move(name), &member);
}

Tensor& Module::add_parameter(std::string name, const Tensor& value) {
  const Tensor parameter = trained("add_parameter", name, value);
  register_parameter(std::move(name), *owned_tensors_.emplace_back(std::make_unique<Tensor>(parameter)));
  return *owned_tensors_.back();
}

Tensor& Module::add_buffer(std::string name, const Tensor& value) {
  require(value.defined(), "add_buffer: '{}' is undefined; give a tensor, such as Tensor::zeros()", name);
  register_buffer(std::move(name), *owned_tensors_.emplace_back(std::make_unique<Tensor>(value)));
  value.storage()->set_tag(MemoryTag::parameters);
  return *owned_tensors_.back();
}

}  // namespace tandem::layers
