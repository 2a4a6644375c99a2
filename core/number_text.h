// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

/// "1,234,567"
std::string with_separators(std::int64_t number);

}  // namespace tandem
