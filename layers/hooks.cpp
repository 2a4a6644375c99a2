// Taking hooks away.
#include "tandem/layers/hooks.h"

namespace tandem::layers {

void RemovableHandle::remove() {
  const auto hooks = hooks_.lock();
  if (hooks == nullptr) return;
  const auto is_mine = [id = id_](const auto& hook) { return hook.first == id; };
  std::erase_if(hooks->before, is_mine);
  std::erase_if(hooks->after, is_mine);
}

}  // namespace tandem::layers
