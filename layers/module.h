// Module: what every layer and network is: a function of a tensor that owns named parameters, buffers and children.
#pragma once

#include "tandem/autograd/precision.h"
#include "tandem/core/error.h"
#include "tandem/core/named_tensors.h"
#include "tandem/layers/hooks.h"
#include "tandem/layers/random_state.h"

#include <fmt/format.h>

#include <concepts>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#ifndef __cpp_rtti
#error "Tandem asks modules for their type: compile without -fno-rtti"
#endif

namespace tandem::layers {

class Initializer;

/// What load_state_dict() left alone.
struct IncompatibleKeys {
  /// A tensor that does not fit.
  struct Mismatch {
    std::string name, problem;  ///< problem: "head.bias is [7], the model has [3]"
  };

  std::vector<std::string> missing_keys;     ///< the module has them, the state does not
  std::vector<std::string> unexpected_keys;  ///< the state has them, the module does not
  std::vector<Mismatch> mismatched_keys;     ///< both have them, in other shapes, or integers for floating numbers

  /// Whether everything fitted.
  bool empty() const { return missing_keys.empty() && unexpected_keys.empty() && mismatched_keys.empty(); }
};

/// "missing: a, b; unexpected: c", of each kind the first six; empty if nothing was left.
std::string to_string(const IncompatibleKeys& keys);

/// load_state_dict() refuses a state: nothing of the module was changed.
class IncompatibleStateError : public Error {
 public:
  /// `text`: what happened, and what to do; `refused`: what does not fit.
  IncompatibleStateError(const std::string& text, IncompatibleKeys refused)
      : Error(text), refused_(std::make_shared<const IncompatibleKeys>(std::move(refused))) {}
  /// What does not fit.
  const IncompatibleKeys& refused() const { return *refused_; }

 private:
  std::shared_ptr<const IncompatibleKeys> refused_;  // shared: copies of an exception must not throw
};

/// What load_state_dict() passes over rather than refuse.
struct LoadStateDictOptions {
  bool strict = true;              ///< refuse missing and unexpected names
  bool ignore_mismatched = false;  ///< leave tensors as they are that do not fit: Mismatch
};

/// Base of layers and networks. Parameters, buffers and children are members of the derived class, registered under
/// PyTorch's names in its constructor; or the module owns them, and the members are references, which add_module() and
/// add_parameter() return. A module keeps where its parts are, so it can be neither copied nor moved. Dotted
/// names, their order (own parameters, then own buffers, then children in order of registration) and the state dict are
/// those of the torch.nn.Module with the same members.
/// Errors thrown in forward are prefixed with the dotted name of the layer they come from.
/// Example:
///     #include "tandem/autograd/functions.h"
///     #include "tandem/layers/initializer.h"
///     class Offset final : public Module {
///      public:
///       explicit Offset(std::int64_t features) : offset_(Initializer::constant({features}, 0.5)) {
///         register_parameter("offset", offset_);
///       }
///       Tensor forward(const Tensor& x) override { return autograd::mul(autograd::add(x, offset_), slope_); }
///       std::string describe() const override { return "Offset"; }
///
///      private:
///       Tensor offset_;
///       Tensor& slope_ = add_parameter("slope", Tensor::full({1, 1}, 1.0));
///     };
///     Offset layer(3);
///     const std::vector<float> values = layer(Tensor::zeros({1, 3})).to_vector<float>();  // {0.5, 0.5, 0.5}
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// What the layer computes. Call the module itself instead, which adds error context, calls hooks and tells the
  /// observer. A module that takes something other than one tensor has a function of its own instead; then this throws
  /// Error.
  virtual Tensor forward(const Tensor& input);
  /// forward(), with hooks and the observer, and with this layer's name in front of errors.
  Tensor operator()(const Tensor& input);

  /// What `compute` gives, timed, and with this layer's name in front of errors: what a call does around forward. For
  /// those that compute the layer in another way (fusion.h).
  Tensor in_context(const std::function<Tensor()>& compute);

  /// "Conv2d(3, 32, kernel 3x3, padding 1)"; by default the name of the class.
  virtual std::string describe() const;

  /// The op that this module's own parameters are for.
  virtual autograd::OpKind op_kind() const { return autograd::OpKind::linear; }

  /// How many modules of a PyTorch nn.Sequential this one stands for: 2 where a ReLU is fused in.
  virtual int sequential_slots() const { return 1; }

  /// By dotted name. Handles share their elements with the module. A tensor that modules share is there once, under its
  /// first name; state_dict() has it under every name.
  /// @{
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  std::vector<std::pair<std::string, Module*>> named_modules();  // itself first, as "", then its parts, once each
  std::vector<Tensor> parameters() const;
  std::int64_t parameter_count() const;
  /// @}

  /// Parameters by a pattern of names in which `*` stands for any text, dots too, `?` for any character and `[ab]` for
  /// one of these (fnmatch), in the order of named_parameters(): for groups of an optimizer
  /// (optim::Optimizer::add_group()). Throws Error where it matches none.
  std::vector<Tensor> parameters(std::string_view pattern) const;

  /// Calls `function` on every module below this one, children before their parents, and at last on this one; on each
  /// once.
  void apply(const std::function<void(Module&)>& function);

  /// Freezes all parameters (`false`), or lets them be trained again. A frozen parameter gets no gradient, and loses
  /// the one it has, so that optimizers leave it alone. Running statistics are frozen by eval(). Make
  /// DistributedDataParallel afterwards: all ranks must freeze alike. torch.nn.Module.requires_grad_().
  void requires_grad(bool required = true);
  /// The same for the parameter or the module of this dotted name. Throws Error where there is neither.
  void requires_grad(std::string_view name, bool required = true);
  void requires_grad(const char* name, bool required = true) { requires_grad(std::string_view(name), required); }

  /// Training mode changes what batch norm and dropout do. Modules are born in training mode.
  void train(bool on = true);
  /// Evaluation mode, and whether the module is in training mode.
  /// @{
  void eval() { train(false); }
  bool training() const { return training_; }
  /// @}

  /// Casts parameters and floating buffers. They stay the same tensors (Tensor::set_data) with other elements, so that
  /// handles of them, and parameters that two modules share, go along; their gradients are dropped. Optimizers that
  /// keep something of the old dtype say so at their next step; replicas are made afterwards, or this throws Error, as
  /// it does for an integer dtype.
  void to(DType dtype);

  /// Brings parameters and floating buffers to the dtypes that the ops of this precision want: weights of convolutions
  /// and matrix products to half, batch norm's to f32. As above.
  void set_precision(autograd::Precision precision);

  /// Moves parameters and floating buffers to a device, as above. Counters (integer buffers) stay on the CPU, which
  /// does the counting. Throws Error if there is no such device.
  void to(Device device);

  /// Drops all gradients.
  void zero_grad() const;

  /// Parameters and buffers without gradient metadata, sharing their elements with the module.
  NamedTensors state_dict() const;

  /// Copies values in, casting floating dtypes. Throws IncompatibleStateError, which has all missing, unexpected and
  /// unfitting tensors, and Error for one that is undefined or given twice; it changes nothing then. What the options
  /// pass over stays as it is, and is returned. Not `strict`: missing and unexpected names are passed over.
  IncompatibleKeys load_state_dict(const NamedTensors& state, bool strict = true) {
    return load_state_dict(state, LoadStateDictOptions{.strict = strict});
  }
  IncompatibleKeys load_state_dict(const NamedTensors& state, const LoadStateDictOptions& options);

  /// Gives every random layer of this tree the state it draws from, and its number in the tree; null: each draws from
  /// one of its own. Training forwards count their uses there.
  void set_random_state(const std::shared_ptr<RandomState>& state);

  /// Called after each forward of this module with what it returned.
  using Observer = std::function<void(const Tensor& output)>;
  /// Sets it, or takes it away where it is empty; returns the one there was.
  Observer set_observer(Observer observer) { return std::exchange(observer_, std::move(observer)); }
  /// Whether somebody sees what this module returns: an observer or a hook.
  bool is_observed() const { return observer_ != nullptr || (hooks_ != nullptr && !hooks_->empty()); }

  /// Calls `hook(module, input, output)` after each forward of this module, in the order of registration. A tensor that
  /// it returns takes the place of the output for the next hook and the caller; it may return nothing. Layers that one
  /// kernel computes at once are computed apart where one of them has a hook. torch.nn.Module.register_forward_hook().
  template <typename Hook>
    requires std::is_invocable_v<Hook&, Module&, const Tensor&, const Tensor&>
  RemovableHandle register_forward_hook(Hook hook) {
    return add_hook(ForwardHook(
        [hook = std::move(hook)](Module& module, const Tensor& input, const Tensor& output) mutable -> Tensor {
          if constexpr (!std::is_void_v<std::invoke_result_t<Hook&, Module&, const Tensor&, const Tensor&>>)
            return hook(module, input, output);
          hook(module, input, output);
          return Tensor();
        }));
  }
  /// The same before forward, as `hook(module, input)`: what it returns takes the place of the input.
  template <typename Hook>
    requires std::is_invocable_v<Hook&, Module&, const Tensor&>
  RemovableHandle register_forward_pre_hook(Hook hook) {
    return add_hook(ForwardPreHook([hook = std::move(hook)](Module& module, const Tensor& input) mutable -> Tensor {
      if constexpr (!std::is_void_v<std::invoke_result_t<Hook&, Module&, const Tensor&>>) return hook(module, input);
      hook(module, input);
      return Tensor();
    }));
  }

 protected:
  // Names are those of one module: neither empty nor with a dot in them, nor given twice, or Error is thrown.
  /// A parameter is a floating tensor that no recorded operation made; it is marked as wanting a gradient (freeze it
  /// afterwards, by requires_grad()). An undefined tensor (an absent bias) is not registered.
  void register_parameter(std::string name, Tensor& member);
  /// Forward writes into a buffer's elements (copy_from(), Out) rather than assign another tensor to the member:
  /// DistributedDataParallel and whatever puts statistics back hold the tensor that was there before.
  void register_buffer(std::string name, Tensor& member);
  /// A child, which the module does not own.
  void register_module(std::string name, Module& member);

  /// Registers a tensor that this module keeps, a floating leaf, as a parameter that wants a gradient:
  /// `Tensor& slope_ = add_parameter("slope", Tensor::full({1}, 0.25));` in the class, and no line in its constructor.
  Tensor& add_parameter(std::string name, const Tensor& value);
  /// The same for a buffer.
  Tensor& add_buffer(std::string name, const Tensor& value);

  /// Registers a module that this one owns: `Linear& head_ = add_module<Linear>("head", {.in = 8, .out = 3},
  /// initializer);`
  template <typename Layer>
  Layer& add_module(std::string name, std::unique_ptr<Layer> module) {
    require(module != nullptr, "add_module('{}'): got no module (a null pointer)", name);
    Layer& result = *module;
    register_module(std::move(name), result);
    owned_modules_.push_back(std::move(module));
    return result;
  }
  template <typename Layer>
  Layer& add_module(std::string name, typename Layer::Options options, Initializer& initializer) {
    return add_module(std::move(name), std::make_unique<Layer>(options, initializer));
  }
  template <typename Layer>
  Layer& add_module(std::string name, typename Layer::Options options) {
    return add_module(std::move(name), std::make_unique<Layer>(options));
  }
  template <typename Layer, typename... Args>
  Layer& add_module(std::string name, Args&&... args) {
    return add_module(std::move(name), std::make_unique<Layer>(std::forward<Args>(args)...));
  }

 private:
  friend std::string to_string(const Module& module);

  // As named_parameters() and named_buffers(), under every name.
  NamedTensors all_parameters() const;
  NamedTensors all_buffers() const;
  /// Gives each parameter and floating buffer of this tree the elements of what `convert` makes of it and its module.
  void replace_tensors(const std::function<Tensor(const Tensor& tensor, const Module& module)>& convert);

  RemovableHandle add_hook(ForwardHook hook);
  RemovableHandle add_hook(ForwardPreHook hook);
  ForwardHooks& hooks();
  Tensor forward_with_hooks(const Tensor& input);
  /// Throws Error for a name that state dicts cannot hold, or that is there already.
  void check_new_name(std::string_view name) const;

  /// Overridden by layers that draw random numbers.
  virtual bool take_random_state(const std::shared_ptr<RandomState>& /*state*/, std::uint32_t /*layer*/) {
    return false;
  }

  std::string name_;  // within the parent
  std::vector<std::pair<std::string, Tensor*>> parameters_;
  std::vector<std::pair<std::string, Tensor*>> buffers_;
  std::vector<std::pair<std::string, Module*>> children_;
  std::vector<std::unique_ptr<Tensor>> owned_tensors_;
  std::vector<std::unique_ptr<Module>> owned_modules_;
  Observer observer_;
  std::shared_ptr<ForwardHooks> hooks_;  // null before the first one
  bool training_ = true;
};

/// describe(), and below it, indented, each child with its name: what `std::cout << module` and
/// `fmt::print("{}", module)` write. Without a line end. Example:
///     #include "tandem/layers/linear.h"
///     #include "tandem/layers/sequential.h"
///     Initializer initializer(1);
///     Sequential network;
///     network.add<Linear>({.in = 4, .out = 3}, initializer);
///     const std::string text = fmt::format("{}", network);  // Sequential of 1
///                                                           //   (0): Linear(4, 3)
std::string to_string(const Module& module);
/// Writes to_string().
std::ostream& operator<<(std::ostream& stream, const Module& module);

/// In messages of require() and fail() a module is what describe() gives: one line.
template <std::derived_from<Module> M>
std::string in_message(const M& module) {
  return module.describe();
}

}  // namespace tandem::layers

template <std::derived_from<tandem::layers::Module> M>
struct fmt::formatter<M> : fmt::formatter<std::string_view> {
  auto format(const tandem::layers::Module& module, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(tandem::layers::to_string(module), context);
  }
};
