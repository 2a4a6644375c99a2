// Sums of rows: added in f32 in their order, divided there, rounded once.
#include "tandem/kernels/reduce/add_rows.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <limits>

using namespace tandem;
using namespace tandem::test;

namespace {

/// The sum of rows of one column.
double sum_of(DType dtype, const std::vector<double>& column, double divisor = 1.0) {
  const auto rows = static_cast<std::int64_t>(column.size());
  const Tensor x = Tensor::empty({rows, 1}, {.dtype = dtype}), sum = Tensor::zeros({1}, {.dtype = dtype});
  for (std::int64_t i = 0; i < rows; ++i) x.select(0, i).fill(column[static_cast<std::size_t>(i)]);
  kernels::add_rows(x, divisor, Out(sum));
  return sum.item();
}

}  // namespace

TEST_CASE("rows of halves are added in f32", "[reduce]") {
  CHECK(sum_of(DType::f16, {2048, 1, 1}) == 2050);  // in f16, 2048 + 1 is 2048
  CHECK(sum_of(DType::bf16, {256, 1, 1}) == 258);
  CHECK(sum_of(DType::f16, {65504, 65504}, 2.0) == 65504);  // the sum is no f16, the average is
  CHECK(sum_of(DType::f16, {65504, 65504}) == std::numeric_limits<double>::infinity());
  CHECK(sum_of(DType::f16, {0x1p-24, 0x1p-24, 0x1p-24}, 3.0) == 0x1p-24);
  CHECK(sum_of(DType::f32, {1.0, 2.0, 4.0}, 2.0) == 3.5);
}

TEST_CASE("rows are added in their order", "[reduce]") {
  CHECK(sum_of(DType::bf16, {0x1p30, -0x1p30, 1.0}) == 1.0);
  CHECK(sum_of(DType::bf16, {1.0, 0x1p30, -0x1p30}) == 0.0);
  CHECK(sum_of(DType::f64, {1.0, 0x1p60, -0x1p60}) == 0.0);
}

TEST_CASE("one row is its own sum, zeros with their sign", "[reduce]") {
  CHECK(std::signbit(sum_of(DType::f16, {-0.0})));
  CHECK(std::signbit(sum_of(DType::f16, {-0.0, -0.0})));
  CHECK(!std::signbit(sum_of(DType::f16, {-0.0, 0.0})));
}

TEST_CASE("add_rows refuses what is no rows and their sum", "[reduce]") {
  const Tensor rows = Tensor::zeros({2, 3}), sum = Tensor::zeros({3});
  const auto error = [](const Tensor& x, const Tensor& out) {
    return error_of([&] { kernels::add_rows(x, 1.0, Out(out)); });
  };
  CHECK_THAT(error(rows, {}), ContainsText("add_rows: needs defined tensors"));
  CHECK_THAT(error(Tensor::zeros({2, 3}, {.dtype = DType::i32}), sum), ContainsText("needs a floating dtype"));
  CHECK_THAT(error(Tensor::zeros({0, 3}), sum), ContainsText("needs one row or more"));
  CHECK_THAT(error(Tensor::zeros({3, 2}).transpose(0, 1), sum), ContainsText("strides"));
  CHECK_THAT(error(rows, Tensor::zeros({2})), ContainsText("must be f32[3], dense, got f32[2]"));
  CHECK_THAT(error(rows, Tensor::zeros({6}).narrow(0, 0, 3, 2)), ContainsText("with strides"));
  CHECK_THAT(error(rows, Tensor::zeros({3}, {.dtype = DType::f16})), ContainsText("got f16[3]"));
}
