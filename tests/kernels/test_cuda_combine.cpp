// What becomes of products that a library has left.
#include "tandem/kernels/gemm/grouped_gemm_implementations.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <vector>

using namespace tandem;
using namespace tandem::test;

// Numbers that every dtype holds.
TEST_CASE("products of a library get what is added and the identity, batch by batch", "[cuda]") {
  if (!has_gpu()) return;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const Tensor c = Tensor::full({2, 2, 3}, 2.0, {.dtype = dtype, .device = kGpu});
    const Tensor addend = Tensor::full({2, 2, 3}, 1.0, c.options());
    addend.select(0, 1).fill(3.0);
    kernels::cuda::combine({{}, {}, Out(c), addend}, {.product = 4.0, .addend = 0.5, .identity = -2.0});
    CHECK(c.to_vector<double>() == std::vector<double>{6.5, 8.5, 8.5, 8.5, 6.5, 8.5, 7.5, 9.5, 9.5, 9.5, 7.5, 9.5});
    kernels::cuda::combine({{}, {}, Out(c)}, {.product = 2.0});
    CHECK(c.to_vector<double>()[1] == 17.0);
  }
}
