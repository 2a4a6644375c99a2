// Small answers of a GPU, on their way to the host.
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::optim {

/// A dense copy on the CPU, which is there once what is enqueued behind it now on the current stream of `there`'s GPU
/// is passed. Where there is no pinned memory it waits for the copy: who takes back a step must not begin because of an
/// answer that nobody could bring.
Tensor begin_copy_to_host(const Tensor& there);

}  // namespace tandem::optim
