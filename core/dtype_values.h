// Which numbers elements of a dtype can be.
// Example:
//     const bool fits = is_in_range(DType::u8, 256.0);       // false
//     const std::string numbers = range_text(DType::u8);     // "0 to 255"
#pragma once

#include "tandem/core/dtype.h"

#include <string>

namespace tandem {

/// Whether an integer dtype has this number once its fraction is cut off. True of floating dtypes, which round.
bool is_in_range(DType dtype, double number);

/// The numbers that an integer dtype has, as "0 to 255".
std::string range_text(DType dtype);

}  // namespace tandem
