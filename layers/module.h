// Module: what every layer and network is: a function of a tensor that owns named parameters, buffers and children.
#pragma once

#include "tandem/autograd/precision.h"
#include "tandem/core/named_tensors.h"
#include "tandem/layers/random_state.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tandem::layers {

/// Base of layers and networks. Parameters, buffers and children are members of the derived class, registered under
/// PyTorch's names in its constructor; the module keeps where they are, so it can be neither copied nor moved. Dotted
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
///       Tensor forward(const Tensor& x) override { return autograd::add(x, offset_); }
///       std::string describe() const override { return "Offset"; }
///
///      private:
///       Tensor offset_;
///     };
///     Offset layer(3);
///     const std::vector<float> values = layer(Tensor::zeros({1, 3})).to_vector<float>();  // {0.5, 0.5, 0.5}
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// What the layer computes. Call the module itself instead, which adds error context and tells the observer.
  virtual Tensor forward(const Tensor& input) = 0;
  Tensor operator()(const Tensor& input);

  /// What `compute` gives, timed, and with this layer's name in front of errors: what a call does around forward. For
  /// those that compute the layer in another way (fusion.h).
  Tensor in_context(const std::function<Tensor()>& compute);

  /// "Conv2d(3, 32, kernel 3x3, padding 1)"
  virtual std::string describe() const = 0;

  /// The op that this module's own parameters are for.
  virtual autograd::OpKind op_kind() const { return autograd::OpKind::linear; }

  /// How many modules of a PyTorch nn.Sequential this one stands for: 2 where a ReLU is fused in.
  virtual int sequential_slots() const { return 1; }

  // By dotted name. Handles share their elements with the module.
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  std::vector<std::pair<std::string, Module*>> named_modules();  // itself first, as "", then its descendants
  std::vector<Tensor> parameters() const;
  std::int64_t parameter_count() const;

  /// Training mode changes what batch norm and dropout do. Modules are born in training mode.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const { return training_; }

  /// Casts parameters and floating buffers. Parameters become new tensors: make optimizers and replicas afterwards.
  void to(DType dtype);

  /// Brings parameters and floating buffers to the dtypes that the ops of this precision want: weights of convolutions
  /// and matrix products to half, batch norm's to f32. They become new tensors, as above.
  void set_precision(autograd::Precision precision);

  /// Moves parameters and floating buffers to a device; they become new tensors, as above. Counters (integer buffers)
  /// stay on the CPU, which does the counting.
  void to(Device device);

  /// Drops all gradients.
  void zero_grad() const;

  /// Parameters and buffers without gradient metadata, sharing their elements with the module.
  NamedTensors state_dict() const;

  /// Copies values in, casting floating dtypes. Throws one Error that lists all missing, unexpected and mis-shaped
  /// tensors, and then changes nothing. Not `strict`: missing and unexpected names are passed over.
  void load_state_dict(const NamedTensors& state, bool strict = true);

  /// Gives every random layer of this tree the state it draws from, and its number in the tree. Training forwards count
  /// their uses there.
  void set_random_state(const std::shared_ptr<RandomState>& state);

  /// Called after each forward of this module with what it returned; empty: none. Returns the one there was.
  using Observer = std::function<void(const Tensor& output)>;
  Observer set_observer(Observer observer) { return std::exchange(observer_, std::move(observer)); }
  bool is_observed() const { return observer_ != nullptr; }

 protected:
  /// An undefined tensor (an absent bias) is not registered.
  void register_parameter(std::string name, Tensor& member);
  void register_buffer(std::string name, Tensor& member);
  void register_module(std::string name, Module& member);

 private:
  /// Replaces each parameter and floating buffer of this tree by what `convert` makes of it and its module, unless that
  /// is the same tensor.
  void replace_tensors(const std::function<Tensor(const Tensor& tensor, const Module& module)>& convert);

  /// Overridden by layers that draw random numbers.
  virtual bool take_random_state(const std::shared_ptr<RandomState>& /*state*/, std::uint32_t /*layer*/) {
    return false;
  }

  std::string name_;  // within the parent
  std::vector<std::pair<std::string, Tensor*>> parameters_;
  std::vector<std::pair<std::string, Tensor*>> buffers_;
  std::vector<std::pair<std::string, Module*>> children_;
  Observer observer_;
  bool training_ = true;
};

}  // namespace tandem::layers
