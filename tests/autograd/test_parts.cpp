// Slices, splits and joined tensors: numbers as in NumPy, shared elements, gradients of parts that overlap, layouts.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <numeric>
#include <utility>
#include <vector>

using namespace tandem;
using namespace tandem::autograd;
using namespace tandem::test;

namespace {

Tensor counted(const Shape& shape, Layout layout = Layout::row_major) {
  std::vector<float> values(static_cast<std::size_t>(element_count(shape)));
  std::iota(values.begin(), values.end(), 0.0f);
  return Tensor::from(values, shape, layout);
}

std::vector<float> values_of(const Tensor& x) { return x.to_vector<float>(); }

}  // namespace

TEST_CASE("slice counts from both ends, and cuts off what lies outside") {
  const Tensor x = counted({6});
  CHECK(values_of(slice(x, 0, 2, 4)) == std::vector<float>{2, 3});
  CHECK(values_of(slice(x, -1, -3, -1)) == std::vector<float>{3, 4});
  CHECK(values_of(slice(x, 0, -100, 2)) == std::vector<float>{0, 1});
  CHECK(values_of(slice(x, 0, 4)) == std::vector<float>{4, 5});
  CHECK(values_of(slice(x, 0, 4, 100)) == std::vector<float>{4, 5});
  CHECK(values_of(slice(x, 0, 0, kEnd, 4)) == std::vector<float>{0, 4});
  CHECK(values_of(slice(x, 0, 1, 6, 1000)) == std::vector<float>{1});
  for (const auto& [start, end] : {std::pair{4, 2}, std::pair{6, 9}, std::pair{3, 3}, std::pair{-1, -3}})
    CHECK(slice(x, 0, start, end).shape() == Shape{0});
  CHECK(slice(Tensor::zeros({0, 3}), 0, -1, 5).shape() == Shape{0, 3});
}

TEST_CASE("slices and splits are views, and joined tensors are copies") {
  const Tensor x = counted({4, 3});
  CHECK(slice(x, 0, 1, 3).storage() == x.storage());
  for (const Tensor& part : split(x, 3)) CHECK(part.storage() == x.storage());
  const Tensor y = concat({x, x}), z = stack({x, x});
  x.fill(9.0);
  CHECK(values_of(slice(x, 0, 1, 2)) == std::vector<float>{9, 9, 9});
  CHECK(values_of(slice(y, 0, 0, 1)) == std::vector<float>{0, 1, 2});
  CHECK(values_of(select(z, 0, 1)) == values_of(counted({4, 3})));
}

TEST_CASE("gradients of slices that overlap are added up") {
  const Tensor x = set_requires_grad(counted({6}));
  const Tensor hidden = x * 2.0;  // no leaf
  const Tensor weights = Tensor::from<float>({1, 10, 100, 1000}, {4});
  backward(sum(slice(hidden, 0, 0, 4) * weights) + sum(slice(hidden, 0, 2) * weights) +
           sum(slice(hidden, 0, 1, kEnd, 2)));
  CHECK(values_of(grad(x)) == std::vector<float>{2, 22, 202, 2022, 200, 2002});
}

TEST_CASE("slices of slices pass gradients to the elements that they show") {
  const Tensor x = set_requires_grad(counted({5, 4}));
  backward(sum(slice(slice(x, 0, 1, kEnd, 2), 1, -2)));
  CHECK(values_of(grad(x)) == std::vector<float>{0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0});
}

TEST_CASE("parts of a split that nothing depends on have gradients of zero") {
  const Tensor x = set_requires_grad(counted({7}));
  const std::vector<Tensor> parts = split(x, 3);
  REQUIRE(parts.size() == 3);
  CHECK(parts[2].shape() == Shape{1});
  backward(sum(parts[0] * 3.0) + sum(parts[2] * 5.0));
  CHECK(values_of(grad(x)) == std::vector<float>{3, 3, 3, 0, 0, 0, 5});
  CHECK(split(Tensor::zeros({2, 0}), 3, 1).size() == 1);
  CHECK(split(Tensor::zeros({2, 0}), 3, 1)[0].shape() == Shape{2, 0});
}

TEST_CASE("views on the tape refuse writes, and what was saved knows of writes to its elements") {
  const Tensor x = set_requires_grad(counted({4}));
  const Tensor part = slice(x, 0, 0, 2);
  CHECK_THAT(error_of([&] { part.fill(1.0); }), ContainsText("made by the recorded operation 'narrow'"));
  CHECK_THAT(error_of([&] { split(x, 2)[1].fill(1.0); }), ContainsText("made by the recorded operation 'split'"));

  const Tensor y = part * part;  // keeps its operands
  {
    const NoGrad no_grad;
    x.fill(5.0);  // by way of the tensor that is looked at
  }
  CHECK_THAT(error_of([&] { backward(sum(y)); }), ContainsText("was changed in place after it was saved"));

  const Tensor z = set_requires_grad(counted({4})), joined = concat({z, z});
  {
    const NoGrad no_grad;
    z.fill(5.0);  // concat is a copy, and keeps nothing
  }
  backward(sum(joined));
  CHECK(values_of(grad(z)) == std::vector<float>{2, 2, 2, 2});
}

TEST_CASE("concat passes over tensors that need no gradient, and takes one several times") {
  const Tensor x = set_requires_grad(counted({2, 1})), fixed = counted({2, 2});
  const Tensor y = concat({x, fixed, x}, 1);
  CHECK(values_of(y) == std::vector<float>{0, 0, 1, 0, 1, 2, 3, 1});
  backward(y, Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4}));
  CHECK(values_of(grad(x)) == std::vector<float>{5, 13});
  const Tensor z = set_requires_grad(Tensor::full({}, 3.0));
  backward(stack({z, z * z}), Tensor::from<float>({10, 100}, {2}));
  CHECK(grad(z).item() == 610.0);
}

TEST_CASE("concat and stack take integers and every size") {
  const Tensor labels = Tensor::from<std::int64_t>({5, 6}, {2});
  CHECK(concat({labels, labels}).to_vector<int>() == std::vector<int>{5, 6, 5, 6});
  CHECK(stack({labels, labels}, 1).to_vector<int>() == std::vector<int>{5, 5, 6, 6});
  CHECK(stack({labels, labels}).dtype() == DType::i64);
  CHECK(concat({Tensor::zeros({0, 3}), Tensor::zeros({0, 3})}).shape() == Shape{0, 3});
  CHECK(stack({Tensor::zeros({})}).shape() == Shape{1});
  const std::vector<Tensor> many(300, Tensor::full({1, 2}, 4.0));
  CHECK(values_of(concat(many)) == std::vector<float>(600, 4.0f));
}

TEST_CASE("concat stores images as its inputs are stored") {
  const Tensor last = counted({2, 3, 4, 5}, Layout::channels_last), first = counted({2, 3, 4, 5});
  CHECK(concat({last, last}, 1).is_dense(Layout::channels_last));
  CHECK(concat({first, first}, 1).is_dense(Layout::row_major));
  CHECK(values_of(concat({last, first}, 1)) == values_of(concat({first, first}, 1)));
}
