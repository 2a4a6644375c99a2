// Which numbers elements of a dtype can be.
#pragma once

#include "tandem/core/dtype.h"

#include <string>

namespace tandem {

/// Whether an integer dtype has this number once its fraction is cut off. True of floating dtypes, which round.
bool is_in_range(DType dtype, double number);

/// The numbers that an integer dtype has, as "0 to 255".
std::string range_text(DType dtype);

}  // namespace tandem
