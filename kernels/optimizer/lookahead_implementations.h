// The implementations of lookahead.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/optimizer/lookahead.h"

namespace tandem::kernels {

namespace cuda {
decltype(kernels::lookahead_step) lookahead_step;
}  // namespace cuda

}  // namespace tandem::kernels
