// argmax and topk on the CPU: ties, NaN, dimensions, empty tensors, gradients.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::autograd;
using namespace tandem::test;

namespace {

const double kNaN = std::nan(""), kInfinity = std::numeric_limits<double>::infinity();
const std::vector<DType> kDTypes{DType::f64, DType::f32, DType::f16, DType::bf16};

Tensor row(const std::vector<double>& values, DType dtype) {
  return cast(Tensor::from(values, {static_cast<std::int64_t>(values.size())}), dtype);
}

}  // namespace

TEST_CASE("of equal elements the first is the greatest, and NaN is greater than all") {
  for (const DType dtype : kDTypes) {
    INFO(name_of(dtype));
    const auto place = [&](const std::vector<double>& values) { return argmax(row(values, dtype), 0).item(); };
    CHECK(place({1, 3, 3, 2}) == 1);
    CHECK(place({-0.0, 0.0}) == 0);
    CHECK(place({0.0, -0.0}) == 0);
    CHECK(place({-kInfinity, -kInfinity}) == 0);
    CHECK(place({1, kInfinity, kNaN, -kNaN, 5}) == 2);
    CHECK(place({-kNaN, kNaN}) == 0);
    const Tensor mixed = row({2, -kInfinity, kNaN, 2, -1, kInfinity, -kNaN}, dtype);
    CHECK(topk(mixed, 7).indices.to_vector<int>() == std::vector<int>{2, 6, 5, 0, 3, 4, 1});
    CHECK(topk(mixed, 7, 0, false).indices.to_vector<int>() == std::vector<int>{1, 4, 0, 3, 5, 2, 6});
    CHECK(topk(mixed, 1, 0, false).indices.to_vector<int>() == std::vector<int>{1});
    CHECK(topk(mixed, 4, 0, true, false).indices.to_vector<int>() == std::vector<int>{0, 2, 5, 6});
    CHECK(topk(mixed, 4, 0, false, false).values.to_vector<double>() == std::vector<double>{2, -kInfinity, 2, -1});
  }
}

TEST_CASE("argmax looks along any dimension of any strides") {
  const Tensor x = Tensor::from<float>({1, 9, 3, 8, 2, 7, 6, 4, 5, 0, 5, 5}, {2, 2, 3});
  for (const Tensor& same : {x, stack({x, x}, -1).select(-1, 1), clone(x.transpose(0, 2)).transpose(0, 2)}) {
    CHECK(argmax(same, 0).to_vector<int>() == std::vector<int>{1, 0, 1, 0, 1, 0});
    CHECK(argmax(same, 1).to_vector<int>() == std::vector<int>{1, 0, 1, 0, 1, 0});
    CHECK(argmax(same, -1).to_vector<int>() == std::vector<int>{1, 0, 0, 1});
  }
  CHECK(argmax(x, 1).shape() == Shape{2, 3});
  CHECK(argmax(x, 1, true).shape() == Shape{2, 1, 3});
  CHECK(argmax(x, -1).dtype() == DType::i64);
  CHECK(argmax(Tensor::zeros({4}), 0).shape() == Shape{});
  CHECK(argmax(Tensor::zeros({0, 4}), 1).shape() == Shape{0});
  CHECK(argmax(Tensor::zeros({5, 1, 0}), 0, true).shape() == Shape{1, 1, 0});
}

TEST_CASE("topk keeps the dimension that it looks along") {
  const Tensor x = Tensor::from<float>({1, 9, 3, 8, 2, 7, 6, 4, 5, 0, 5, 5}, {2, 2, 3});
  const Topk best = topk(x, 2, 1);
  CHECK(best.values.shape() == Shape{2, 2, 3});
  CHECK(best.values.to_vector<float>() == std::vector<float>{8, 9, 7, 1, 2, 3, 6, 5, 5, 0, 4, 5});
  CHECK(best.indices.to_vector<int>() == std::vector<int>{1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1});
  CHECK(topk(x, 1, 0).values.shape() == Shape{1, 2, 3});
  CHECK(topk(x, 0).values.shape() == Shape{2, 2, 0});
  CHECK(topk(x, 0).indices.shape() == Shape{2, 2, 0});
  CHECK(topk(Tensor::zeros({0, 3}), 2).values.shape() == Shape{0, 2});
}

TEST_CASE("gradients of topk go to where the values came from") {
  const Tensor x = set_requires_grad(Tensor::from<float>({1, 9, 3, 8, 2, 7}, {2, 3}));
  const Topk best = topk(x, 2);
  CHECK(!requires_grad(best.indices));
  backward(best.values, Tensor::from<float>({1, 2, 3, 4}, {2, 2}));
  CHECK(grad(x).to_vector<float>() == std::vector<float>{0, 1, 2, 3, 0, 4});
  clear_grad(x);
  backward(topk(x, 1, 0).values, Tensor::from<float>({1, 2, 3}, {1, 3}));
  CHECK(grad(x).to_vector<float>() == std::vector<float>{0, 2, 0, 1, 0, 3});
  clear_grad(x);
  backward(sum(topk(x, 0).values));
  CHECK(grad(x).to_vector<float>() == std::vector<float>(6, 0.0f));
  CHECK(!requires_grad(argmax(x, 0)));
}

TEST_CASE("argmax without a dimension counts all elements in row-major order") {
  const Tensor x = Tensor::from<float>({1, 7, 5, 9, 0, 9}, {2, 3});
  CHECK(argmax(x).shape() == Shape{});
  CHECK(argmax(x).item() == 3);
  CHECK(argmax(x.transpose(0, 1)).item() == 1);
  CHECK(argmax(set_requires_grad(x.clone())).item() == 3);
  CHECK(argmax(Tensor::full({}, -1.0)).item() == 0);
  CHECK_THAT(error_of([] { argmax(Tensor::zeros({0, 3})); }),
             ContainsText("argmax: f32[0, 3] has no elements, and so no greatest one"));
  CHECK_THAT(error_of([] { argmax(Tensor()); }), ContainsText("argmax: needs a defined tensor"));
}

TEST_CASE("argmax refuses what has no greatest element, in one line") {
  CHECK_THAT(error_of([] { argmax(Tensor::zeros({2, 0}), -1); }),
             ContainsText("argmax: dimension -1 of f32[2, 0] has no elements, and so no greatest one"));
  CHECK_THAT(error_of([] { argmax(Tensor::zeros({}), 0); }),
             ContainsText("argmax: f32[] is a number and has no dimension to look along; use reshape"));
  CHECK_THAT(error_of([] { argmax(Tensor::zeros({2}, {.dtype = DType::i32}), 0); }),
             ContainsText("argmax: needs a floating dtype (f64, f32, f16 or bf16), got i32[2]; use cast"));
  CHECK_THAT(error_of([] { argmax(Tensor::zeros({2}), 1); }), ContainsText("dimension 1 is out of range"));
  CHECK_THAT(error_of([] { argmax(Tensor(), 0); }), ContainsText("argmax: needs a defined tensor, got undefined"));
}
