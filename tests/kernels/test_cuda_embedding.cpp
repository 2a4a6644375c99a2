// Lookup of rows on the GPU: numbers outside of the range, wide rows, many positions.
#include "tandem/kernels/embedding/embedding.h"
#include "tandem/kernels/embedding/embedding_implementations.h"
#include "tests/kernels/cuda_compare.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::test;

namespace {

Tensor numbers(std::int64_t count, std::int64_t range) {
  std::vector<std::int64_t> values;
  for (std::int64_t n = 0; n < count; ++n) values.push_back((7 * n + 3) * n % range);
  return Tensor::from(values, {count});
}

}  // namespace

TEST_CASE("rows looked up on the GPU, and their gradients, are those of the reference", "[cuda][embedding]") {
  if (!has_gpu()) return;
  const PoisonScope poison;
  for (const Shape& shape : {Shape{3, 1}, Shape{50, 7}, Shape{2, 300}}) {
    for (const DType dtype : kKernelDtypes) {
      INFO(to_string(shape) << ", " << name_of(dtype));
      const Tensor weight = values_of(shape, dtype, true, 1), indices = numbers(70, shape[0]);
      const Tensor grad = values_of({70, shape[1]}, dtype, true, 2);
      const Tensor there = put(indices, Place::gaps), y = empty_at(Place::dense, grad.shape(), dtype),
                   grad_weight = empty_at(Place::dense, shape, dtype);
      kernels::embedding_forward(there, put(weight), Out(y));
      kernels::embedding_backward(there, put(grad), Out(grad_weight));
      const Tensor expected = Tensor::empty(grad.shape(), {.dtype = dtype}),
                   expected_gradient = Tensor::empty(shape, {.dtype = dtype});
      kernels::reference::embedding_forward(indices, weight, Out(expected));
      kernels::reference::embedding_backward(indices, grad, Out(expected_gradient));
      CHECK(y.to_vector<float>() == expected.to_vector<float>());
      CHECK(grad_weight.to_vector<float>() == expected_gradient.to_vector<float>());
    }
  }
}

TEST_CASE("indices outside of the rows give NaN on the GPU, add to no gradient, and require_indices names them",
          "[cuda][embedding]") {
  if (!has_gpu()) return;
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{4}, std::int64_t{1} << 40}) {
    const Tensor indices = put(Tensor::from(std::vector<std::int64_t>{1, bad, 2}, {3}));
    const Tensor weight = put(Tensor::full({4, 5}, 2.0)), y = empty_at(Place::dense, {3, 5}, DType::f32);
    kernels::embedding_forward(indices, weight, Out(y));
    kernels::embedding_backward(indices, put(Tensor::full({3, 5}, 1.0)), Out(weight));
    for (const std::int64_t row : {0, 1, 2})
      CHECK(std::isnan(y.narrow(0, row, 1).to_vector<float>().back()) == (row == 1));
    for (const std::int64_t row : {0, 1, 2, 3})
      CHECK(weight.narrow(0, row, 1).to_vector<float>().back() == (row == 1 || row == 2 ? 1.0f : 0.0f));
    CHECK(error_of([&] { kernels::require_indices(indices, 4); }) ==
          fmt::format("embedding: index 1 is {}, outside of the 4 rows of the weight", bad));
  }
  kernels::require_indices(put(numbers(9, 4)), 4);
}

TEST_CASE("lookups on the GPU of f64 and of mixed devices are refused", "[cuda][embedding]") {
  if (!has_gpu()) return;
  const TensorOptions f64{.dtype = DType::f64, .device = kGpu};
  const Tensor wide_rows = Tensor::zeros({2, 3}, f64), rows = put(Tensor::zeros({2, 3})), there = put(numbers(2, 2));
  CHECK_THAT(error_of([&] { kernels::embedding_forward(there, wide_rows, Out(wide_rows.clone())); }),
             ContainsText("embedding: CUDA kernels take f32, f16 and bf16, got f64"));
  CHECK_THAT(error_of([&] { kernels::embedding_forward(numbers(2, 2), rows, Out(rows.clone())); }),
             ContainsText("move one of them"));
}
