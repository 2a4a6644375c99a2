// Functions that a module calls before and after its forward.
#pragma once

#include "tandem/core/tensor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace tandem::layers {

class Module;

/// Gets a module's input and returns what forward takes in its place; an undefined tensor leaves it as it is.
using ForwardPreHook = std::function<Tensor(Module& module, const Tensor& input)>;
/// Gets a module's input and output and returns what its caller gets; an undefined tensor leaves the output as it is.
using ForwardHook = std::function<Tensor(Module& module, const Tensor& input, const Tensor& output)>;

/// The hooks of one module, by number. Copies of this share them, so that a hook may keep state in itself.
struct ForwardHooks {
  std::int64_t next = 0;  ///< number of the next hook
  std::vector<std::pair<std::int64_t, std::shared_ptr<const ForwardPreHook>>>
      before;                                                                      ///< called before forward, by number
  std::vector<std::pair<std::int64_t, std::shared_ptr<const ForwardHook>>> after;  ///< called after it, by number

  /// Whether nobody has registered one, or all were removed.
  bool empty() const { return before.empty() && after.empty(); }
};

/// torch.utils.hooks.RemovableHandle: takes a hook away again. Destroying the handle leaves the hook where it is;
/// copies stand for the same hook. Example:
///     #include "tandem/layers/activation.h"
///     ReLU layer;
///     int calls = 0;
///     RemovableHandle handle = layer.register_forward_hook([&](Module&, const Tensor&, const Tensor&) { ++calls; });
///     layer(Tensor::zeros({2}));
///     handle.remove();
///     layer(Tensor::zeros({2}));
///     const int counted = calls;  // 1
class RemovableHandle {
 public:
  /// Of no hook.
  RemovableHandle() = default;
  RemovableHandle(const std::shared_ptr<ForwardHooks>& hooks, std::int64_t id) : hooks_(hooks), id_(id) {}

  /// Does nothing if the hook was removed, or the module is gone. A hook may remove itself while it runs.
  void remove();

 private:
  std::weak_ptr<ForwardHooks> hooks_;
  std::int64_t id_ = -1;
};

}  // namespace tandem::layers
