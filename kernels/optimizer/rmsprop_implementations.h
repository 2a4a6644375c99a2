// The implementations of rmsprop.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/optimizer/rmsprop.h"

namespace tandem::kernels {

/// Those given by value.
StepFactors factors_of(const RmspropOptions& options);

namespace cuda {
decltype(kernels::rmsprop_step) rmsprop_step;
}  // namespace cuda

}  // namespace tandem::kernels
