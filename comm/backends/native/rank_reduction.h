// The reduction of all ranks' elements at once, where one rank sees the memory of all.
#pragma once

#include "tandem/comm/collective.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem::comm {

/// Writes x0 op x1 op ... , in the order of `inputs`, to each of `outputs`: `count` elements each, where an output may
/// be an input. f16 and bf16 are combined in f32 and rounded once; `average` divides by the number of inputs before
/// that. min and max pass NaN on. All dtypes but u8, whose `average` is for floats alone.
void reduce_ranks(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs, std::int64_t count,
                  DType dtype, ReduceOp op);

}  // namespace tandem::comm
