// The implementations of adam.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/optimizer/adam.h"

namespace tandem::kernels {

namespace cuda {
decltype(kernels::adam_step) adam_step;
}  // namespace cuda

}  // namespace tandem::kernels
