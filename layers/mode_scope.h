// Training or evaluation mode for a while, and what a trial forward leaves as it was.
#pragma once

#include "tandem/autograd/grad_mode.h"
#include "tandem/core/named_tensors.h"
#include "tandem/layers/module.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tandem::layers {

/// Puts a module and all below it into training or evaluation mode, and at the end of the scope every one of them back
/// into the mode it was in: what was frozen by eval() stays so.
/// Example:
///     #include "tandem/layers/dropout.h"
///     Dropout dropout(0.5);
///     {
///       const ModeScope evaluation(dropout, false);
///       const Tensor y = dropout(Tensor::full({2, 8}, 1.0));  // unchanged
///     }
///     const bool trains = dropout.training();  // true
class ModeScope {
 public:
  /// Sets the mode at once, of `module` and of all below it.
  ModeScope(Module& module, bool training) : ModeScope(module) { module.train(training); }
  /// Modes stay as they are until the scope changes them.
  explicit ModeScope(Module& module) {
    for (const auto& [name, part] : module.named_modules()) modes_.emplace_back(part, part->training());
  }
  ~ModeScope() {
    for (const auto& [part, mode] : modes_) part->train(mode);  // parents first, so children end with their own
  }
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  std::vector<std::pair<Module*, bool>> modes_;
};

/// Takes the observers of a module and of all below it away, and gives them back at the end of the scope.
class NoObservers {
 public:
  /// Takes them at once.
  explicit NoObservers(Module& module) {
    for (const auto& [name, part] : module.named_modules()) observers_.emplace_back(part, part->set_observer({}));
  }
  ~NoObservers() {
    // Backwards: of a module under two names the first entry has the observer.
    std::for_each(observers_.rbegin(), observers_.rend(),
                  [](auto& entry) { entry.first->set_observer(std::move(entry.second)); });
  }
  NoObservers(const NoObservers&) = delete;
  NoObservers& operator=(const NoObservers&) = delete;

 private:
  std::vector<std::pair<Module*, Module::Observer>> observers_;
};

/// Keeps copies of a module's buffers, and writes them back at the end of the scope.
class SameBuffers {
 public:
  /// Copies them at once.
  explicit SameBuffers(const Module& module) : buffers_(module.named_buffers()) {
    for (const auto& [name, buffer] : buffers_) copies_.push_back(buffer.clone());
  }
  ~SameBuffers() {
    const autograd::NoGrad no_grad;
    for (std::size_t i = 0; i < copies_.size(); ++i) buffers_[i].second.copy_from(copies_[i]);
  }
  SameBuffers(const SameBuffers&) = delete;
  SameBuffers& operator=(const SameBuffers&) = delete;

 private:
  NamedTensors buffers_;
  std::vector<Tensor> copies_;
};

}  // namespace tandem::layers
