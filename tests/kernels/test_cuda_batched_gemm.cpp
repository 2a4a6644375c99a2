// batched_gemm on the GPU: every element of every product, also where one launch has too few blocks for the batch.
#include "tandem/kernels/gemm/batched_gemm.h"
#include "tandem/kernels/gemm/batched_gemm_implementations.h"
#include "tests/kernels/product_support.h"

namespace tandem::test {
namespace {

/// Both operands as they are, and as transposed views.
void check_products(const Shape& a_shape, const Shape& b_shape, const Shape& c_shape, DType dtype) {
  const auto transposed = [](const Shape& shape) {
    Shape result = shape;
    std::swap(result[-1], result[-2]);
    return result;
  };
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const Tensor a =
          transpose_a ? drawn(transposed(a_shape), dtype, 1, true).transpose(-1, -2) : drawn(a_shape, dtype, 1, true);
      const Tensor b =
          transpose_b ? drawn(transposed(b_shape), dtype, 2, true).transpose(-1, -2) : drawn(b_shape, dtype, 2, true);
      INFO(describe(a) << " by " << describe(b) << ", transposed " << transpose_a << " " << transpose_b);
      const Tensor c = poisoned_on_gpu(c_shape, dtype).contiguous(),
                   expected = Tensor::empty(c_shape, {.dtype = DType::f64});
      kernels::batched_gemm(on_gpu(a), on_gpu(b), Out(c));
      kernels::batched_gemm(in_f64(a), in_f64(b), Out(expected));
      CHECK(difference(c, expected) == "");
    }
  }
}

}  // namespace

TEST_CASE("on CUDA, batched_gemm multiplies every matrix of the batch", "[cuda]") {
  if (!has_gpu()) return;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    check_products({5, 7, 3}, {5, 3, 9}, {5, 7, 9}, dtype);
    check_products({3, 8, 20}, {3, 20, 12}, {3, 8, 12}, dtype);       // whole fours
    check_products({32, 36, 4}, {32, 4, 40}, {32, 36, 40}, dtype);    // tiles of 64
    check_products({2, 1, 5, 4}, {3, 4, 8}, {2, 3, 5, 8}, dtype);     // a nest of two dimensions
    check_products({1, 3, 6, 4}, {2, 1, 4, 7}, {2, 3, 6, 7}, dtype);  // which merges in none
  }
}

TEST_CASE("on CUDA, batched_gemm takes more matrices than a grid is deep", "[cuda]") {
  if (!has_gpu()) return;
  const Shape shape{65537, 1, 1};
  const Tensor a = drawn(shape, DType::f32, 1, true), b = drawn(shape, DType::f32, 2, true);
  const Tensor c = poisoned_on_gpu(shape, DType::f32), expected = Tensor::empty(shape, {.dtype = DType::f64});
  kernels::batched_gemm(on_gpu(a), on_gpu(b), Out(c));
  kernels::batched_gemm(in_f64(a), in_f64(b), Out(expected));
  CHECK(difference(c, expected) == "");
}

}  // namespace tandem::test
