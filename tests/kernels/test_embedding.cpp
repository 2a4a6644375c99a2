// Lookups of indices that do not lie side by side, on the CPU.
#include "tandem/core/out.h"
#include "tandem/core/tensor.h"
#include "tandem/kernels/embedding/embedding.h"
#include "tandem/kernels/embedding/embedding_implementations.h"
#include "tests/support/catch.h"

#include <vector>

using namespace tandem;

TEST_CASE("indices with gaps are those of the reference, in lookups and their gradients", "[embedding]") {
  const Tensor pairs = Tensor::from<std::int64_t>({3, 9, 0, 9, 2, 9, 3, 9}, {4, 2});
  const Tensor indices = pairs.select(1, 0);  // 3, 0, 2, 3
  REQUIRE(indices.stride(0) == 2);
  const Tensor weight = Tensor::from<float>({0, 1, 10, 11, 20, 21, 30, 31}, {4, 2});
  const Tensor rows = Tensor::zeros({4, 2}), expected = Tensor::zeros({4, 2});
  kernels::embedding_forward(indices, weight, Out(rows));
  kernels::reference::embedding_forward(indices, weight, Out(expected));
  CHECK(rows.to_vector<float>() == std::vector<float>{30, 31, 0, 1, 20, 21, 30, 31});
  CHECK(expected.to_vector<float>() == rows.to_vector<float>());

  const Tensor slope = Tensor::full({4, 2}, 1.0), gradient = Tensor::zeros({4, 2}), other = Tensor::zeros({4, 2});
  kernels::embedding_backward(indices, slope, Out(gradient));
  kernels::reference::embedding_backward(indices, slope, Out(other));
  CHECK(gradient.to_vector<float>() == std::vector<float>{1, 1, 0, 0, 1, 1, 2, 2});
  CHECK(other.to_vector<float>() == gradient.to_vector<float>());
}
