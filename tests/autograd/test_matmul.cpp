// matmul: what it keeps for backward, empty tensors, views as operands.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/memory.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::autograd;
using namespace tandem::test;

TEST_CASE("matmul of nothing is zero, and its gradients are zero or empty") {
  const Tensor a = set_requires_grad(Tensor::zeros({2, 3, 0})), b = set_requires_grad(Tensor::zeros({0, 4}));
  const Tensor y = matmul(a, b);
  CHECK(y.to_vector<float>() == std::vector<float>(24, 0.0f));
  backward(sum(y));
  CHECK(grad(a).shape() == a.shape());
  CHECK(grad(b).shape() == b.shape());

  const Tensor none = set_requires_grad(Tensor::zeros({0, 3, 5})), c = set_requires_grad(Tensor::full({5, 4}, 2.0));
  const Tensor empty = matmul(none, c);
  CHECK(empty.shape() == Shape{0, 3, 4});
  backward(sum(empty));
  CHECK(grad(c).to_vector<float>() == std::vector<float>(20, 0.0f));
}

TEST_CASE("matmul keeps an operand only for the gradient of the other") {
  const Tensor weight = set_requires_grad(Tensor::full({3, 2}, 2.0)), x = Tensor::full({4, 3}, 1.0);
  const Tensor y = matmul(x, weight);
  {
    const NoGrad no_grad;
    weight.fill(7.0);  // x needs no gradient
  }
  backward(sum(y));
  CHECK(grad(weight).to_vector<float>() == std::vector<float>(6, 4.0f));
  const Tensor z = matmul(x, weight);
  x.fill(3.0);
  CHECK_THAT(error_of([&] { backward(sum(z)); }), ContainsText("was changed in place after it was saved"));
}

TEST_CASE("matmul takes one tensor as both operands") {
  const Tensor x = set_requires_grad(Tensor::from<float>({1, 2, 3, 4}, {2, 2}));
  backward(sum(matmul(x, transpose(x, 0, 1))));  // |sum of rows|^2
  CHECK(grad(x).to_vector<float>() == std::vector<float>{8, 12, 8, 12});
}

TEST_CASE("matmul multiplies transposed operands where they lie") {
  const Tensor a = Tensor::full({8, 40, 50}, 1.0), b = Tensor::full({8, 60, 50}, 2.0);
  reset_peak_memory();
  const std::int64_t before = memory_stats().current_of(MemoryTag::activations);
  const Tensor y = matmul(a, transpose(b, -2, -1));
  CHECK(memory_stats().peak_of(MemoryTag::activations) == before + y.numel() * 4);
  CHECK(y.select(0, 7).select(0, 39).select(0, 59).item() == 100.0);
}

TEST_CASE("matmul lets go of an operand that no gradient needs") {
  const Tensor plain = Tensor::full({3, 3}, 1.0), leaf = set_requires_grad(Tensor::full({3, 3}, 2.0));
  for (const bool is_left : {true, false}) {
    Tensor operand = scale(leaf, 2.0);
    const std::weak_ptr<Storage> memory = operand.storage();
    const Tensor y = is_left ? matmul(operand, plain) : matmul(plain, operand);
    operand = Tensor();
    CHECK(memory.expired());
    backward(sum(y));
  }
  CHECK(grad(leaf).to_vector<float>() == std::vector<float>(9, 12.0f));
}
