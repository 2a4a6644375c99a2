// Modules in a list, for a network that calls them itself.
#pragma once

#include "tandem/layers/container.h"

#include <cstddef>

namespace tandem::layers {

/// torch.nn.ModuleList: owns modules, numbered from 0, whose parameters, buffers and modes are those of the list. The
/// list itself computes nothing: calling it throws Error. Example:
///     #include "tandem/layers/linear.h"
///     class Towers final : public Module {
///      public:
///       explicit Towers(Initializer& initializer) {
///         for (int i = 0; i < 3; ++i) towers_.add<Linear>({.in = 8, .out = 8, .relu = true}, initializer);
///       }
///       Tensor forward(const Tensor& x) override {
///         Tensor y = x;
///         for (Module& tower : towers_) y = tower(y);
///         return y;
///       }
///       std::string describe() const override { return "Towers"; }
///
///      private:
///       ModuleList& towers_ = add_module<ModuleList>("towers");
///     };
///     Initializer initializer(1);
///     Towers network(initializer);
///     const Tensor y = network(Tensor::zeros({2, 8}));                   // [2, 8]
///     const std::string last = network.named_parameters().back().first;  // "towers.2.bias"
class ModuleList final : public Container {
 public:
  /// Goes through the modules.
  class Iterator {
   public:
    /// At a place in the list.
    explicit Iterator(const std::unique_ptr<Module>* at) : at_(at) {}
    /// As of any iterator forward.
    /// @{
    Module& operator*() const { return **at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    /// @}
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const std::unique_ptr<Module>* at_;
  };
  /// For loops over the modules.
  /// @{
  Iterator begin() { return Iterator(layers().data()); }
  Iterator end() { return Iterator(layers().data() + layers().size()); }
  /// @}

  /// Throws Error: a list computes nothing by itself.
  [[noreturn]] Tensor forward(const Tensor& input) override;
  /// "ModuleList of 3".
  std::string describe() const override;

 private:
  int slots_of(const Module&) const override { return 1; }
};

}  // namespace tandem::layers
