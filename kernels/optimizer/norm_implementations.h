// The implementations of norm.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/optimizer/norm.h"

namespace tandem::kernels {

namespace cuda {
decltype(kernels::squared_norm_there) squared_norm_there;
decltype(kernels::scale_all) scale_all;
}  // namespace cuda

}  // namespace tandem::kernels
