// Whether this thread records operations on the tape. autograd/grad_mode.h is the switch; it is kept here so that a
// Tensor can refuse what would lose gradients or make them wrong.
#pragma once

namespace tandem::detail {

inline constinit thread_local bool recording = true;

}  // namespace tandem::detail
