// Modules in a list.
#include "tandem/layers/module_list.h"

namespace tandem::layers {

Tensor ModuleList::forward(const Tensor&) {
  fail("ModuleList: a list has no forward; call its modules, list[i](x), or use Sequential");
}

std::string ModuleList::describe() const { return fmt::format("ModuleList of {}", size()); }

}  // namespace tandem::layers
