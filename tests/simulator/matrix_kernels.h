// One tile through the tensor cores: c[16][8] + a[16][k] b[k][8], row-major, k = 16 for halves and 8 for tf32.
#pragma once

#include <vector>

namespace tandem::test {

enum class MatrixDType { f16, bf16, tf32 };

std::vector<float> tensor_core_product(MatrixDType dtype, const std::vector<float>& a, const std::vector<float>& b,
                                       const std::vector<float>& c);

}  // namespace tandem::test
