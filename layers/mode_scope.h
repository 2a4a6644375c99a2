// Training or evaluation mode for a while.
#pragma once

#include "tandem/layers/module.h"

#include <algorithm>
#include <utility>

namespace tandem::layers {

/// Puts a module and all below it into training or evaluation mode, and at the end of the scope every one of them back
/// into the mode it was in: what was frozen by eval() stays so.
/// Example:
///     #include "tandem/layers/activation.h"
///     Dropout dropout(0.5);
///     {
///       const ModeScope evaluation(dropout, false);
///       const Tensor y = dropout(Tensor::full({2, 8}, 1.0));  // unchanged
///     }
///     const bool trains = dropout.training();  // true
class ModeScope {
 public:
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

}  // namespace tandem::layers
