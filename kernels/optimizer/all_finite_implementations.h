// The implementations of all_finite.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/optimizer/all_finite.h"

namespace tandem::kernels {

namespace cuda {
decltype(kernels::any_non_finite) any_non_finite;
}  // namespace cuda

}  // namespace tandem::kernels
