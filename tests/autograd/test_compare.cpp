// Comparisons on the CPU.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/kernels/elementwise/compare.h"
#include "tests/autograd/comparisons.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <limits>

using namespace tandem;
using namespace tandem::test;

TEST_CASE("comparisons make masks of every dtype, stride and broadcast shape, and know NaN") {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8})
    check_comparisons(dtype, {});
}

TEST_CASE("integers are compared and chosen as what they are, not as floating numbers") {
  check_comparisons_of_great_integers({});
  for (const DType dtype : {DType::i64, DType::i32, DType::u8}) check_where_of_integers(dtype, {});
}

TEST_CASE("masks are combined, to choose where several things hold") {
  const Tensor x = autograd::set_requires_grad(Tensor::from<float>({-2, -1, 0, 3}, {4}));
  const Tensor inside = autograd::logical_and(x > -2, x < 3);
  CHECK(!autograd::requires_grad(inside));
  CHECK(inside.to_vector<int>() == std::vector<int>{0, 1, 1, 0});
  CHECK(autograd::logical_not(inside).to_vector<int>() == std::vector<int>{1, 0, 0, 1});
  CHECK(autograd::logical_or(inside, x > 2).to_vector<int>() == std::vector<int>{0, 1, 1, 1});
  CHECK(autograd::logical_xor(inside, x < 1).to_vector<int>() == std::vector<int>{1, 0, 0, 0});
  autograd::backward(autograd::sum(autograd::where(inside, x * x, x)));
  CHECK(autograd::grad(x).to_vector<float>() == std::vector<float>{1, -2, 0, 1});
}

TEST_CASE("comparisons are not recorded, and choose what where() passes gradients to") {
  const Tensor x = autograd::set_requires_grad(Tensor::from<float>({-2, -1, 0, 3}, {4}));
  const Tensor mask = autograd::gt(x, 0.0);
  CHECK(!autograd::requires_grad(mask));
  autograd::backward(autograd::sum(autograd::where(mask, x * x, -x)));
  CHECK(autograd::grad(x).to_vector<float>() == std::vector<float>{-1, -1, -1, 6});
}

TEST_CASE("the operators of comparison are the functions, with tensors and numbers") {
  const Tensor a = Tensor::from<float>({1, 2, 3}, {3}), b = Tensor::full({1}, 2.0);
  using Mask = std::vector<int>;
  CHECK((a < b).to_vector<int>() == Mask{1, 0, 0});
  CHECK((a <= b).to_vector<int>() == Mask{1, 1, 0});
  CHECK((a > b).to_vector<int>() == Mask{0, 0, 1});
  CHECK((a >= b).to_vector<int>() == Mask{0, 1, 1});
  CHECK((a < 2).to_vector<int>() == Mask{1, 0, 0});
  CHECK((a <= 2).to_vector<int>() == Mask{1, 1, 0});
  CHECK((a > 2).to_vector<int>() == Mask{0, 0, 1});
  CHECK((a >= 2).to_vector<int>() == Mask{0, 1, 1});
  CHECK((2 < a).to_vector<int>() == Mask{0, 0, 1});
  CHECK((2.0 <= a).to_vector<int>() == Mask{0, 1, 1});
  CHECK((2.0f > a).to_vector<int>() == Mask{1, 0, 0});
  CHECK((2 >= a).to_vector<int>() == Mask{1, 1, 0});
}

TEST_CASE("what is compared with NaN is 0, with the number on either side") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = Tensor::from<double>({1, nan}, {2});
  for (const Tensor& mask : {nan<x, nan <= x, nan> x, nan >= x, x<nan, x <= nan, x> nan, x >= nan})
    CHECK(mask.to_vector<int>() == std::vector<int>{0, 0});
  for (const Tensor& mask : {2 > x, 2 >= x, 0 < x, 0 <= x}) CHECK(mask.to_vector<int>() == std::vector<int>{1, 0});
}

namespace {

template <typename T, typename Other>
concept Compound = requires(T a, Other b) { a += b; } || requires(T a, Other b) { a -= b; } ||
                   requires(T a, Other b) { a *= b; } || requires(T a, Other b) { a /= b; };

}  // namespace

TEST_CASE("a tensor is not changed by an operator: there is no +=, and x = x + y keeps the tape") {
  STATIC_REQUIRE(Compound<double, double>);
  STATIC_REQUIRE(!Compound<Tensor, Tensor>);
  STATIC_REQUIRE(!Compound<Tensor, double>);
  const Tensor leaf = autograd::set_requires_grad(Tensor::from<float>({1, 2}, {2}));
  Tensor x = leaf;
  x = x + leaf * leaf;
  CHECK(leaf.to_vector<float>() == std::vector<float>{1, 2});
  autograd::backward(autograd::sum(x));
  CHECK(autograd::grad(leaf).to_vector<float>() == std::vector<float>{3, 5});
}

TEST_CASE("where() takes a number in place of either tensor, and gives the other its gradient") {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const Tensor x = autograd::set_requires_grad(autograd::cast(Tensor::from<float>({-2, -1, 0, 3}, {4}), dtype));
    const Tensor kept = autograd::where(x > 0, x, 0), replaced = autograd::where(x > 0, 5, x);
    CHECK((kept.dtype() == dtype && replaced.dtype() == dtype));
    CHECK(kept.to_vector<float>() == std::vector<float>{0, 0, 0, 3});
    CHECK(replaced.to_vector<float>() == std::vector<float>{-2, -1, 0, 5});
    autograd::backward(autograd::sum(kept));
    CHECK(autograd::grad(x).to_vector<float>() == std::vector<float>{0, 0, 0, 1});
    autograd::backward(autograd::sum(replaced));
    CHECK(autograd::grad(x).to_vector<float>() == std::vector<float>{1, 1, 1, 1});
  }
  CHECK_THAT(error_of([] { autograd::where(Tensor::zeros({2}, {.dtype = DType::u8}), Tensor(), 0); }),
             ContainsText("where: a and b must be tensors or one of them a number"));
}

TEST_CASE("comparisons refuse what they cannot compare in one line") {
  const Tensor x = Tensor::zeros({2, 3});
  CHECK_THAT(error_of([&] { autograd::lt(x, Tensor::zeros({2, 4})); }),
             ContainsText("lt: shapes f32[2, 3] and f32[2, 4] do not broadcast"));
  CHECK_THAT(error_of([&] { autograd::ge(x, Tensor::zeros({3}, {.dtype = DType::f16})); }),
             ContainsText("ge: f32[2, 3] on cpu and f16[3] on cpu must have one dtype and one device; use cast"));
  CHECK_THAT(error_of([] { autograd::eq(Tensor::zeros({2}, {.dtype = DType::i64}), 2.5); }),
             ContainsText("eq: 2.5 is no number that i64[2] has, which are whole ones from -9223372036854775808 to "
                          "9223372036854775807; give cast(x, DType::f32)"));
  CHECK_THAT(error_of([] { autograd::gt(Tensor::zeros({2}, {.dtype = DType::i64}), 0x1p53); }),
             ContainsText("gt: a double, as 9007199254740992, is not every whole number from 2^53 on; give "
                          "Tensor::from<std::int64_t>({number}, {}) beside i64[2]"));
  CHECK_THAT(error_of([] { autograd::where(Tensor(), Tensor::zeros({2}), 1.0); }),
             ContainsText("where: needs a condition, a u8 tensor (0 or not), got undefined tensor"));
  CHECK_THAT(error_of([] { autograd::lt(Tensor::zeros({2}, {.dtype = DType::u8}), 256); }),
             ContainsText("lt: 256 is no number that u8[2] has, which are whole ones from 0 to 255; give cast("));
  CHECK_THAT(error_of([] { autograd::ne(Tensor(), 1.0); }), ContainsText("ne: needs a defined tensor"));
  const Tensor mask = Tensor::zeros({2}, {.dtype = DType::u8});
  const Tensor square = Tensor::zeros({2, 2}, {.dtype = DType::u8});
  CHECK_THAT(
      error_of([&] { kernels::compare("ge", kernels::Comparison::ge, square, square.transpose(0, 1), Out(square)); }),
      ContainsText("ge: input and output u8[2, 2] overlap without being the same elements"));
  CHECK_THAT(error_of([&] { autograd::logical_and(mask, Tensor::zeros({2})); }),
             ContainsText("logical_and: u8[2] on cpu and f32[2] on cpu must have one dtype and one device; use cast"));
  CHECK_THAT(error_of([&] { autograd::where(mask, mask, -1); }), ContainsText("where: -1 is no number that u8[2] has"));
}
