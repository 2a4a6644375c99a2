// Numbers as people read them.
// Example:
//     const std::string text = with_separators(1234567);  // "1,234,567"
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

/// "1,234,567"
std::string with_separators(std::int64_t number);

}  // namespace tandem
