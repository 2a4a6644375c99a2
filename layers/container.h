// What Sequential and ModuleList share: modules in order, which the container owns.
#pragma once

#include "tandem/layers/initializer.h"
#include "tandem/layers/lambda.h"
#include "tandem/layers/module.h"

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tandem::layers {

/// A function of a tensor that is no module.
template <typename F>
concept TensorFunction = std::is_invocable_r_v<Tensor, F&, const Tensor&> && !std::derived_from<F, Module>;

/// Each add() returns the module that it appends, which lives as long as the container. Without a name, modules are
/// numbered.
class Container : public Module {
 public:
  template <std::derived_from<Module> Layer>
  Layer& add(std::unique_ptr<Layer> layer) {
    return add(next_name(), std::move(layer));
  }
  template <std::derived_from<Module> Layer>
  Layer& add(std::string name, std::unique_ptr<Layer> layer) {
    require(layer != nullptr, "{}: module '{}' is a null pointer", describe(), name);
    Layer& result = *layer;
    append(std::move(name), std::move(layer));
    return result;
  }

  /// Makes a Layer from its options and appends it.
  template <typename Layer>
  Layer& add(typename Layer::Options options, Initializer& initializer) {
    return add(std::make_unique<Layer>(options, initializer));
  }
  template <typename Layer>
  Layer& add(typename Layer::Options options) {
    return add(std::make_unique<Layer>(options));
  }

  /// Makes a Layer from the arguments and appends it.
  template <typename Layer, typename... Args>
  Layer& add(Args&&... args) {
    return add(std::make_unique<Layer>(std::forward<Args>(args)...));
  }

  /// A function as a module: `network.add([](const Tensor& x) { return autograd::scale(x, 2.0); }, "Twice")`.
  template <TensorFunction F>
  Lambda& add(F function, std::string description = "Lambda") {
    return add(std::make_unique<Lambda>(std::move(function), std::move(description)));
  }
  template <TensorFunction F>
  Lambda& add(std::string name, F function, std::string description = "Lambda") {
    return add(std::move(name), std::make_unique<Lambda>(std::move(function), std::move(description)));
  }

  std::size_t size() const { return layers_.size(); }
  bool empty() const { return layers_.empty(); }
  /// The `index`-th module; throws Error if there are not as many.
  Module& operator[](std::size_t index) { return at(index); }
  const Module& operator[](std::size_t index) const { return at(index); }

 protected:
  const std::vector<std::unique_ptr<Module>>& layers() const { return layers_; }

 private:
  Module& at(std::size_t index) const {
    require(index < layers_.size(), "{}: there is no module {}; they are numbered from 0", describe(), index);
    return *layers_[index];
  }
  void append(std::string name, std::unique_ptr<Module> layer) {
    next_slot_ += slots_of(*layer);
    register_module(std::move(name), *layer);
    layers_.push_back(std::move(layer));
  }
  std::string next_name() const { return std::to_string(next_slot_); }
  /// By how much the number of the next module is larger.
  virtual int slots_of(const Module& layer) const = 0;

  std::vector<std::unique_ptr<Module>> layers_;
  int next_slot_ = 0;
};

}  // namespace tandem::layers
