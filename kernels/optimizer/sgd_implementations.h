// The implementations of sgd.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/optimizer/sgd.h"

namespace tandem::kernels {

/// Those given by value.
StepFactors factors_of(const SgdOptions& options);

namespace cuda {
decltype(kernels::sgd_step) sgd_step;
}  // namespace cuda

}  // namespace tandem::kernels
