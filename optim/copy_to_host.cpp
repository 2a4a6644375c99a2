// By pinned memory, or without.
#include "tandem/optim/copy_to_host.h"

#include "tandem/core/error.h"
#include "tandem/core/memory.h"

namespace tandem::optim {

Tensor begin_copy_to_host(const Tensor& there) {
  const MemoryTagScope scope(MemoryTag::workspace);
  Tensor here;
  try {
    here = Tensor::empty(there.shape(), {.dtype = there.dtype(), .pinned = true});
  } catch (const Error&) {
    return there.to(Device{});
  }
  here.copy_from_async(there);
  return here;
}

}  // namespace tandem::optim
