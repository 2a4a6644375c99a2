// The implementations of norm.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/optimizer/norm.h"

namespace tandem::kernels {

namespace cuda {
decltype(kernels::squared_norm) squared_norm;
decltype(kernels::scale_all) scale_all;
}  // namespace cuda

}  // namespace tandem::kernels
