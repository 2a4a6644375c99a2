// Modules as text.
#include "tandem/layers/module.h"

#include <ostream>

namespace tandem::layers {

std::string to_string(const Module& module) {
  std::string text = module.describe();
  for (const auto& [name, child] : module.children_) {
    text += fmt::format("\n  ({}): ", name);
    for (const char letter : to_string(*child)) {
      text += letter;
      if (letter == '\n') text += "  ";
    }
  }
  return text;
}

std::ostream& operator<<(std::ostream& stream, const Module& module) { return stream << to_string(module); }

}  // namespace tandem::layers
