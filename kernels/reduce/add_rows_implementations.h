// The implementations of add_rows.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/reduce/add_rows.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::add_rows) add_rows;
}  // namespace reference

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
decltype(kernels::add_rows) add_rows;
}  // namespace cuda

}  // namespace tandem::kernels
