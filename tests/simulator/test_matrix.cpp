// ldmatrix and mma against plain products: the lanes' shares of every element.
#include "tests/simulator/matrix_kernels.h"
#include "tests/support/catch.h"

using namespace tandem::test;

TEST_CASE("tensor-core tiles equal plain products on whole numbers") {
  for (const MatrixDType dtype : {MatrixDType::f16, MatrixDType::bf16, MatrixDType::tf32}) {
    const std::size_t k_size = dtype == MatrixDType::tf32 ? 8 : 16;
    std::vector<float> a(16 * k_size), b(k_size * 8), c(16 * 8);
    // No two elements of a row or a column alike: an element in the wrong place shows.
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 37 % 61) - 30.0f;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 29 % 53) - 26.0f;
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(i);
    std::vector<float> expected = c;
    for (std::size_t row = 0; row < 16; ++row)
      for (std::size_t column = 0; column < 8; ++column)
        for (std::size_t k = 0; k < k_size; ++k) expected[row * 8 + column] += a[row * k_size + k] * b[k * 8 + column];
    INFO("dtype " << static_cast<int>(dtype));
    CHECK(tensor_core_product(dtype, a, b, c) == expected);
  }
}
