// Tensors as text. Beside NumPy: print/compare_numpy.py.
#include "tandem/core/describe.h"
#include "tandem/core/recording.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <typename T>
std::string text_of(const std::vector<double>& values, const Shape& shape) {
  std::vector<T> elements;
  for (const double value : values) {
    if constexpr (std::is_integral_v<T>)
      elements.push_back(static_cast<T>(value));
    else
      elements.push_back(T(static_cast<compute_t<T>>(value)));
  }
  return to_string(Tensor::from<T>(elements, shape));
}

Tensor counting(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(element_count(shape)));
  std::iota(values.begin(), values.end(), 0.0f);
  return Tensor::from(values, shape);
}

struct LeafMeta final : AutogradMeta {
  std::string_view operation() const override { return ""; }
};

}  // namespace

TEST_CASE("streams and fmt show values, dtype, shape and device") {
  const Tensor x = Tensor::from<float>({1, 2.5, -3, 4}, {2, 2});
  const std::string expected = "tensor([[ 1. ,  2.5],\n        [-3. ,  4. ]], f32[2, 2], cpu)";
  CHECK(to_string(x) == expected);
  CHECK(fmt::format("{}", x) == expected);
  CHECK(fmt::format("{:.2}", Tensor::full({1}, 1.0 / 3.0)) == "tensor([0.33], f32[1], cpu)");
  std::ostringstream stream;
  stream << x << " " << x.shape() << " " << x.strides() << " " << x.dtype() << " " << x.device();
  CHECK(stream.str() == expected + " [2, 2] [2, 1] f32 cpu");
  CHECK(fmt::format("{} {} {} {}", x.shape(), x.strides(), x.dtype(), x.device()) == "[2, 2] [2, 1] f32 cpu");
}

TEST_CASE("messages show a tensor in one line, without values") {
  const Tensor x = counting({30, 30});
  CHECK(error_of([&] { fail("got {} and {}", x, 1); }) == "got f32[30, 30] and 1");
  CHECK(error_of([&] { require(false, "got {}", Tensor()); }) == "got undefined tensor");
}

TEST_CASE("a format that tensors do not have is refused") {
  const Tensor x = Tensor::zeros({1});
  for (const char* format : {"{:x}", "{:.}", "{:.3f}", "{:8}"})
    CHECK_THROWS_WITH(fmt::format(fmt::runtime(format), x), ContainsText("a tensor's format is {}"));
}

TEST_CASE("each dtype has its own digits") {
  CHECK(text_of<double>({0.1, 1.0 / 3.0}, {2}) == "tensor([0.1       , 0.33333333], f64[2], cpu)");
  CHECK(text_of<float>({0.1, 1.0 / 3.0}, {2}) == "tensor([0.1       , 0.33333334], f32[2], cpu)");
  CHECK(text_of<Half>({0.1, 1.0 / 3.0}, {2}) == "tensor([0.1   , 0.3333], f16[2], cpu)");
  CHECK(text_of<BFloat16>({0.1, 1.0 / 3.0}, {2}) == "tensor([0.1  , 0.334], bf16[2], cpu)");
  CHECK(text_of<std::int64_t>({-9007199254740992.0, 1}, {2}) ==
        "tensor([-9007199254740992,                 1], i64[2], cpu)");
  CHECK(text_of<std::int32_t>({-2147483648.0, 2147483647}, {2}) == "tensor([-2147483648,  2147483647], i32[2], cpu)");
  CHECK(text_of<std::uint8_t>({0, 255}, {2}) == "tensor([  0, 255], u8[2], cpu)");
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(to_string(Tensor::from<std::int64_t>({most}, {1})) == "tensor([9223372036854775807], i64[1], cpu)");
}

TEST_CASE("numbers of very different sizes are written with exponents") {
  CHECK(text_of<double>({1, 1000}, {2}) == "tensor([   1., 1000.], f64[2], cpu)");
  CHECK(text_of<double>({1, 1001}, {2}) == "tensor([1.000e+00, 1.001e+03], f64[2], cpu)");
  CHECK(text_of<double>({1e-5}, {1}) == "tensor([1.e-05], f64[1], cpu)");
  CHECK(text_of<double>({1e-300, 1}, {2}) == "tensor([1.e-300, 1.e+000], f64[2], cpu)");
  CHECK(text_of<float>({999999}, {1}) == "tensor([999999.], f32[1], cpu)");
  CHECK(text_of<float>({1e6}, {1}) == "tensor([1.e+06], f32[1], cpu)");
  CHECK(text_of<Half>({999.5}, {1}) == "tensor([999.5], f16[1], cpu)");
  CHECK(text_of<Half>({65504}, {1}) == "tensor([6.55e+04], f16[1], cpu)");
  CHECK(text_of<BFloat16>({128}, {1}) == "tensor([1.28e+02], bf16[1], cpu)");
}

TEST_CASE("zeros, infinities and NaN keep their sign and the column's width") {
  CHECK(text_of<float>({0, -0.0}, {2}) == "tensor([ 0., -0.], f32[2], cpu)");
  CHECK(text_of<Half>({0, -0.0}, {2}) == "tensor([ 0., -0.], f16[2], cpu)");
  CHECK(text_of<float>({-kInfinity, kInfinity, std::nan(""), 1.25}, {4}) ==
        "tensor([-inf,  inf,  nan, 1.25], f32[4], cpu)");
  CHECK(text_of<double>({std::nan("")}, {1}) == "tensor([nan], f64[1], cpu)");
  CHECK(text_of<BFloat16>({kInfinity, 1}, {2}) == "tensor([inf,  1.], bf16[2], cpu)");
}

TEST_CASE("one number, no elements and no tensor at all have a text") {
  CHECK(to_string(Tensor::full({}, 2.5)) == "tensor(2.5, f32[], cpu)");
  CHECK(to_string(Tensor::zeros({2, 0, 3})) == "tensor([], f32[2, 0, 3], cpu)");
  CHECK(to_string(Tensor()) == "tensor(undefined)");
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    CHECK_THAT(to_string(Tensor::full({3}, 5.0, {.dtype = dtype})), ContainsText(fmt::format("{}[3], cpu)", dtype)));
  }
}

TEST_CASE("of more than 1000 elements the ends are shown") {
  CHECK(to_string(counting({1000})).find("...") == std::string::npos);
  CHECK(to_string(counting({1001})) == "tensor([   0.,    1.,    2., ...,  998.,  999., 1000.], f32[1001], cpu)");
  CHECK(to_string(counting({2000})) ==
        "tensor([0.000e+00, 1.000e+00, 2.000e+00, ..., 1.997e+03, 1.998e+03,\n"
        "        1.999e+03], f32[2000], cpu)");
  CHECK(to_string(counting({8, 2, 70}), {.edge_items = 1}) ==
        "tensor([[[   0., ...,   69.],\n"
        "         [  70., ...,  139.]],\n"
        "\n"
        "        ...,\n"
        "\n"
        "        [[ 980., ..., 1049.],\n"
        "         [1050., ..., 1119.]]], f32[8, 2, 70], cpu)");
  CHECK(to_string(counting({2, 3}), {.threshold = 5, .edge_items = 1}) ==
        "tensor([[0., ..., 2.],\n        [3., ..., 5.]], f32[2, 3], cpu)");
}

TEST_CASE("a line is filled to its last column, and no further") {
  const Tensor digits = Tensor::from<std::int64_t>({0, 1, 2, 3, 4}, {5});
  CHECK(to_string(digits.narrow(0, 0, 4), {.line_width = 20}) == "tensor([0, 1, 2, 3],\n       i64[4], cpu)");
  CHECK(to_string(digits, {.line_width = 20}) == "tensor([0, 1, 2, 3,\n        4],\n       i64[5], cpu)");
  // With its bracket and comma this row would end in column 22.
  const Tensor longer = Tensor::from<std::int64_t>({10000, 10001}, {2});
  CHECK(to_string(longer, {.line_width = 21}) == "tensor([10000,\n        10001],\n       i64[2], cpu)");
  CHECK(to_string(longer, {.line_width = 22}) == "tensor([10000, 10001],\n       i64[2], cpu)");
}

TEST_CASE("strided views are shown in the order of their dimensions") {
  const Tensor x = counting({2, 3});
  CHECK(to_string(x.transpose(0, 1)) == "tensor([[0., 3.],\n        [1., 4.],\n        [2., 5.]], f32[3, 2], cpu)");
  CHECK(to_string(x.narrow(1, 0, 2, 2).select(0, 1)) == "tensor([3., 5.], f32[2], cpu)");
  CHECK(to_string(Tensor::full({1}, 7).expand({3})) == "tensor([7., 7., 7.], f32[3], cpu)");
  CHECK(to_string(counting({40, 50}).transpose(0, 1), {.edge_items = 1}) ==
        "tensor([[   0., ..., 1950.],\n        ...,\n        [  49., ..., 1999.]], f32[50, 40], cpu)");
}

TEST_CASE("a tensor on the tape is shown, and that it requires a gradient") {
  const Tensor x = counting({1500});
  x.autograd_meta() = std::make_shared<LeafMeta>();
  x.autograd_meta()->requires_grad = true;
  REQUIRE(detail::recording);
  CHECK(to_string(x, {.edge_items = 1}) == "tensor([   0., ..., 1499.], f32[1500], cpu, requires_grad)");
}

TEST_CASE("options that make no sense are refused in one line") {
  const Tensor x = Tensor::zeros({1});
  CHECK(error_of([&] { to_string(x, {.precision = -1}); }) ==
        "to_string: precision must lie between 0 and 100, got -1");
  CHECK(to_string(counting({3}), {.threshold = 2, .edge_items = std::numeric_limits<std::int64_t>::max()}) ==
        to_string(counting({3})));
  CHECK(error_of([&] { to_string(x, {.edge_items = 0}); }) == "to_string: edge_items must be at least 1, got 0");
  CHECK(error_of([&] { to_string(x, {.line_width = 3}); }) == "to_string: line_width must be at least 20, got 3");
  CHECK(error_of([&] { to_string(x, {.threshold = -1}); }) == "to_string: threshold must not be negative, got -1");
}

TEST_CASE("a tensor on a GPU is shown as one on the CPU", "[cuda]") {
  if (!has_gpu()) return;
  for (const Shape& shape : {Shape{}, Shape{2, 3}, Shape{40, 30}, Shape{0}}) {
    std::string expected = to_string(counting(shape));
    expected.replace(expected.rfind("cpu"), 3, name_of(kGpu));
    const std::string shown = to_string(counting(shape).to(kGpu));
    CHECK(shown.substr(0, shown.find("f32[")) == expected.substr(0, expected.find("f32[")));
    CHECK_THAT(shown, ContainsText(name_of(kGpu)));
  }
  const Tensor view = counting({40, 50}).to(kGpu).transpose(0, 1).narrow(0, 0, 25, 2);
  const std::string shown = to_string(view), same = to_string(view.to(Device{}));
  CHECK(shown.substr(0, shown.find("f32[")) == same.substr(0, same.find("f32[")));
}
