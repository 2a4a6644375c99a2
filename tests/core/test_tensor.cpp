// Tensors: making, reading, copying, layouts, and what is refused.
#include "tandem/core/tensor.h"

#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <limits>
#include <numeric>

using namespace tandem;
using namespace tandem::test;

namespace {

std::vector<double> counting(std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0.0);
  return values;
}

}  // namespace

TEST_CASE("a tensor holds what it was made from, in either layout") {
  const std::vector<double> values = counting(2 * 3 * 4 * 5);
  for (const Layout layout : {Layout::row_major, Layout::channels_last}) {
    const Tensor x = Tensor::from(values, {2, 3, 4, 5}, layout);
    CHECK(x.to_vector<double>() == values);
    CHECK(x.is_dense(layout));
    CHECK(x.is_dense());
  }
  const Tensor image = Tensor::from(values, {2, 3, 4, 5}, Layout::channels_last);
  CHECK(image.strides() == Strides{60, 1, 15, 3});
  CHECK_FALSE(image.is_dense(Layout::row_major));
  CHECK(image.data<double>()[1] == values[20]);  // the second channel of the first pixel
  CHECK(image.contiguous().data<double>()[1] == 1.0);
  CHECK(image.contiguous(Layout::channels_last).is_same(image));
}

TEST_CASE("sizes of 1 have no say in density") {
  const Tensor x = Tensor::zeros({4, 3, 1, 1});
  CHECK(x.is_dense(Layout::channels_last));
  CHECK(x.contiguous(Layout::channels_last).is_same(x));
  CHECK(Tensor::zeros({0, 3, 5}).transpose(0, 2).is_dense(Layout::row_major));
}

TEST_CASE("all dtypes fill, convert and read back") {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const Tensor x = Tensor::full({3}, 5.0, {.dtype = dtype});
    CHECK(x.to_vector<double>() == std::vector<double>{5.0, 5.0, 5.0});
    CHECK(x.storage()->bytes() == 3 * size_of(dtype));
    CHECK(describe(x) == fmt::format("{}[3]", name_of(dtype)));
  }
}

TEST_CASE("bools make a mask, and are read back") {
  const Tensor mask = Tensor::from<bool>({true, false, true}, {3});
  CHECK(mask.dtype() == DType::u8);
  CHECK(mask.to_vector<int>() == std::vector{1, 0, 1});
  CHECK(mask.to_vector<bool>() == std::vector{true, false, true});
  CHECK(Tensor::from<float>({0, 0.5, -1}, {3}).to_vector<bool>() == std::vector{false, true, true});
}

TEST_CASE("integers are filled with numbers that they have") {
  const auto filled = [](DType dtype, double value) { return Tensor::full({2}, value, {.dtype = dtype}); };
  CHECK(filled(DType::u8, 255.9).to_vector<double>() == std::vector<double>{255, 255});
  CHECK(filled(DType::u8, -0.5).to_vector<double>() == std::vector<double>{0, 0});
  CHECK(filled(DType::i32, -2147483648.0).to_vector<std::int32_t>()[1] == std::numeric_limits<std::int32_t>::min());
  CHECK(filled(DType::i64, -0x1p63).to_vector<std::int64_t>()[1] == std::numeric_limits<std::int64_t>::min());
  CHECK(error_of([&] { filled(DType::u8, 300); }) == "fill: 300 is no number that u8 has, which is from 0 to 255");
  CHECK(error_of([&] { filled(DType::u8, -1); }) == "fill: -1 is no number that u8 has, which is from 0 to 255");
  CHECK_THAT(error_of([&] { filled(DType::i32, 0x1p31); }), ContainsText("from -2147483648 to 2147483647"));
  CHECK_THAT(error_of([&] { filled(DType::i64, 0x1p63); }), ContainsText("is no number that i64 has"));
  CHECK_THAT(error_of([&] { filled(DType::i64, std::nan("")); }), ContainsText("fill: nan is no number that i64 has"));
  CHECK_THAT(error_of([&] { filled(DType::i32, -std::numeric_limits<double>::infinity()); }), ContainsText("-inf"));
  CHECK(filled(DType::f16, 1e9).to_vector<double>()[0] == std::numeric_limits<double>::infinity());
}

TEST_CASE("rank 0, no elements and no tensor at all") {
  const Tensor number = Tensor::full({}, 2.5);
  CHECK(number.item() == 2.5);
  CHECK(number.numel() == 1);
  const Tensor none = Tensor::zeros({3, 0, 2});
  CHECK(none.numel() == 0);
  CHECK(none.to_vector<float>().empty());
  CHECK(none.clone().shape() == none.shape());
  const Tensor undefined;
  CHECK_FALSE(undefined.defined());
  CHECK(describe(undefined) == "undefined tensor");
  CHECK_THAT(error_of([&] { undefined.shape(); }), ContainsText("undefined"));
}

TEST_CASE("copies move elements between any strides") {
  const Tensor source = Tensor::from(counting(24), {2, 3, 4});
  const Tensor target = Tensor::zeros({4, 3, 2}, {.dtype = DType::f64});
  target.transpose(0, 2).copy_from(source);
  CHECK(target.transpose(0, 2).to_vector<double>() == counting(24));
  const Tensor gap = Tensor::zeros({9}, {.dtype = DType::f64});
  gap.narrow(0, 1, 4, 2).fill(7.0);
  CHECK(gap.to_vector<double>() == std::vector<double>{0, 7, 0, 7, 0, 7, 0, 7, 0});
  const Tensor copy = source.clone();
  copy.zero();
  CHECK(source.to_vector<double>() == counting(24));
  CHECK(source.transpose(0, 1).clone().strides() == source.transpose(0, 1).strides());
}

TEST_CASE("a large copy shared out over threads is complete") {
  const std::int64_t count = std::int64_t{3} * 17 * 41 * 53;
  const Tensor x = Tensor::from(counting(count), {3, 17, 41, 53});
  CHECK(x.contiguous(Layout::channels_last).to_vector<double>() == counting(count));
}

TEST_CASE("in-place changes raise the version that all views share") {
  const Tensor x = Tensor::zeros({4});
  const std::uint64_t version = x.storage()->version();
  x.narrow(0, 1, 2).fill(1.0);
  CHECK(x.storage()->version() > version);
}

TEST_CASE("wrong uses are refused with what and why") {
  const Tensor x = Tensor::zeros({2, 3});
  CHECK_THAT(error_of([&] { x.data<double>(); }), ContainsText("holds f32, asked for f64"));
  CHECK_THAT(error_of([&] { x.item(); }), ContainsText("item: f32[2, 3]"));
  CHECK_THAT(error_of([&] { x.copy_from(Tensor::zeros({3, 2})); }), ContainsText("f32[3, 2]"));
  CHECK_THAT(error_of([&] { x.copy_from(Tensor::zeros({2, 3}, {.dtype = DType::f16})); }), ContainsText("f16[2, 3]"));
  CHECK_THAT(error_of([&] { Tensor::from(counting(5), {2, 3}); }), ContainsText("5 values do not fill shape [2, 3]"));
  CHECK_THAT(error_of([&] { Tensor::empty({2, -1}); }), ContainsText("negative size in shape [2, -1]"));
  constexpr std::int64_t kLarge = std::int64_t{1} << 40;
  CHECK_THAT(error_of([&] { Tensor::empty({kLarge, kLarge}); }), ContainsText("too many elements"));
  CHECK_THAT(error_of([&] { Tensor::empty({kLarge, std::int64_t{1} << 22}); }), ContainsText("too many elements"));
  CHECK_THAT(error_of([&] { Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}); }), ContainsText("at most 8 dimensions"));
  CHECK_THAT(error_of([&] { x.size(2); }), ContainsText("dimension 2 is out of range"));
}
