// The implementations of grouped_gemm.h, which its dispatcher chooses from. They take no empty products.
#pragma once

#include "tandem/kernels/gemm/grouped_gemm.h"

namespace tandem::kernels::cuda {

void grouped_gemm(std::span<const GroupedProduct> products, const Combination& combination);

/// c = product * c + addend * d + identity * I, of each in a launch of its own.
void combine(const GroupedProduct& product, const Combination& combination);

}  // namespace tandem::kernels::cuda
