// What keeps the table of a kernel of many tensors on a GPU.
#pragma once

#include <any>

namespace tandem::kernels {

/// Where an optimizer's kernel keeps its table of tensors on a GPU from one call to the next. The table is copied to
/// the GPU anew only where an address, a size or a dtype is another one than at the call before, or the current stream:
/// a call that finds it can be part of a WorkGraph. One cache for each list of tensors. Empty at first, and on the CPU.
struct TableCache {
  std::any last = {};  ///< for the kernels
};

}  // namespace tandem::kernels
