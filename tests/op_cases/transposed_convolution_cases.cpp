// Op cases: conv_transpose2d.
#include "tandem/autograd/functions/conv_transpose2d.h"
#include "tests/op_cases/op_case.h"

#include <limits>

using namespace tandem;
using namespace tandem::test;
using autograd::conv_transpose2d;
using autograd::conv_transpose2d_output_shape;
using autograd::ConvTranspose2dOptions;

namespace {

struct Variant {
  std::string name;
  std::int64_t outputs, height, width;  // of the weight
  ConvTranspose2dOptions options;
  bool depthwise = false;  // as many groups as channels
};

const std::vector<Variant>& exact_variants() {
  static const std::vector<Variant> all = {
      {"1x1", 4, 1, 1, {}},
      {"3x3, padding 1", 5, 3, 3, {.padding = {1, 1}}},
      {"2x2, stride 2", 3, 2, 2, {.stride = {2, 2}}},
      {"4x4, stride 2, padding 1", 3, 4, 4, {.stride = {2, 2}, .padding = {1, 1}}},
      {"3x2, stride 2x3, output padding 1x2", 2, 3, 2, {.stride = {2, 3}, .padding = {1, 0}, .output_padding = {1, 2}}},
      {"3x3, dilation 1x2, padding 1x2", 3, 3, 3, {.padding = {1, 2}, .dilation = {1, 2}}},
      {"3x2, dilation 2x4, stride 1x2, output padding 1x3",
       2,
       3,
       2,
       {.stride = {1, 2}, .padding = {1, 1}, .output_padding = {1, 3}, .dilation = {2, 4}}},
      {"3x3, stride 2, depthwise", 2, 3, 3, {.stride = {2, 2}, .padding = {1, 1}, .output_padding = {1, 1}}, true},
      // With 8 input channels this one runs on tensor cores.
      {"3x3, stride 2, 8 outputs", 8, 3, 3, {.stride = {2, 2}, .padding = {1, 1}}},
  };
  return all;
}

/// Winograd's transforms serve these where there are enough channels; they round even whole numbers.
const std::vector<Variant>& rounded_variants() {
  static const std::vector<Variant> all = {
      {"3x3, padding 1", 16, 3, 3, {.padding = {1, 1}}},
      {"3x3", 32, 3, 3, {}},
  };
  return all;
}

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();  // twice as much overflows

/// Each pixel of x, times the filter, is added where it belongs: plain loops of f64.
Tensor reference_of(const std::vector<Tensor>& in, const ConvTranspose2dOptions& options) {
  const Shape x_shape = in[0].shape(), w_shape = in[1].shape();
  const Shape y_shape = conv_transpose2d_output_shape(x_shape, w_shape, options);
  const auto x = in[0].to_vector<double>(), w = in[1].to_vector<double>();
  const std::vector<double> bias = in.size() > 2 ? in[2].to_vector<double>() : std::vector<double>();
  std::vector<double> y(static_cast<std::size_t>(element_count(y_shape)));
  const auto at = [](const Shape& shape, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    return static_cast<std::size_t>(((a * shape[1] + b) * shape[2] + c) * shape[3] + d);
  };
  for (std::int64_t i = 0; i < element_count(y_shape); ++i) {
    const auto k = static_cast<std::size_t>(i / (y_shape[2] * y_shape[3]) % y_shape[1]);
    if (!bias.empty()) y[static_cast<std::size_t>(i)] = bias[k];
  }
  const std::int64_t group_c = x_shape[1] / options.groups;
  for (std::int64_t i = 0; i < element_count(x_shape) * w_shape[1] * w_shape[2] * w_shape[3]; ++i) {
    std::int64_t rest = i;
    const auto next = [&rest](std::int64_t size) {
      const std::int64_t digit = rest % size;
      rest /= size;
      return digit;
    };
    const std::int64_t s = next(w_shape[3]), r = next(w_shape[2]), k = next(w_shape[1]);
    const std::int64_t column = next(x_shape[3]), row = next(x_shape[2]), c = next(x_shape[1]), n = rest;
    const std::int64_t p = row * options.stride[0] - options.padding[0] + r * options.dilation[0];
    const std::int64_t q = column * options.stride[1] - options.padding[1] + s * options.dilation[1];
    if (p < 0 || p >= y_shape[2] || q < 0 || q >= y_shape[3]) continue;
    y[at(y_shape, n, c / group_c * w_shape[1] + k, p, q)] +=
        x[at(x_shape, n, c, row, column)] * w[at(w_shape, c, k, r, s)];
  }
  return Tensor::from(y, y_shape);
}

/// Whether anything is left of an output from `size` pixels.
bool fits(std::int64_t size, const Variant& variant, std::size_t dim, std::int64_t kernel) {
  const ConvTranspose2dOptions& options = variant.options;
  return (size - 1) * options.stride[dim] + options.dilation[dim] * (kernel - 1) + options.output_padding[dim] >=
         2 * options.padding[dim];
}

std::vector<OpCall> calls_of(const Shape& nchw, const std::vector<Variant>& variants, bool bias) {
  std::vector<OpCall> result;
  for (const Variant& variant : variants) {
    ConvTranspose2dOptions options = variant.options;
    if (variant.depthwise) options.groups = nchw[1];
    if (!fits(nchw[2], variant, 0, variant.height) || !fits(nchw[3], variant, 1, variant.width)) continue;
    const Shape weight{nchw[1], variant.outputs, variant.height, variant.width};
    const Shape y = conv_transpose2d_output_shape(nchw, weight, options);
    OpCall call;
    call.variant = variant.name;
    call.inputs = {{.shape = nchw}, {.shape = weight}};
    if (bias) call.inputs.push_back({.shape = {y[1]}});
    call.function = [=](const std::vector<Tensor>& in) {
      return conv_transpose2d(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), options);
    };
    call.reference = [=](const std::vector<Tensor>& in) { return reference_of(in, options); };
    // Forward sums over channels and filter, backward over the filter, over all pixels of x or over those of y.
    call.terms = static_cast<double>(std::max(element_count(weight), nchw[0] * y[2] * y[3]));
    result.push_back(call);
  }
  return result;
}

std::vector<BadInput> bad_inputs() {
  const auto refuse = [](const Shape& x, const Shape& w, const Shape& b, const ConvTranspose2dOptions& options = {}) {
    return [=] { conv_transpose2d(Tensor::zeros(x), Tensor::zeros(w), Tensor::zeros(b), options); };
  };
  return {
      {"nothing", [] { conv_transpose2d({}, {}, {}); }, "conv_transpose2d: needs a defined x and weight"},
      {"no image", refuse({3, 8, 8}, {3, 4, 3, 3}, {4}), "conv_transpose2d: needs x [N,C,H,W]"},
      {"channels", refuse({2, 3, 8, 8}, {4, 3, 3, 3}, {3}), "weight should be [3, K/groups, R, S]"},
      {"groups", refuse({2, 3, 8, 8}, {3, 2, 3, 3}, {4}, {.groups = 2}), "groups divide 3"},
      {"stride 0", refuse({2, 3, 4, 4}, {3, 4, 1, 1}, {4}, {.stride = {0, 1}}),
       "stride and dilation must be at least 1"},
      {"huge dilation", refuse({2, 3, 4, 4}, {3, 4, 3, 3}, {4}, {.dilation = {1, kHuge}}), "at most"},
      {"huge padding", refuse({2, 3, 4, 4}, {3, 4, 3, 3}, {4}, {.padding = {kHuge, 0}}), "at most"},
      {"huge output", refuse({2, 3, 4, 4}, {3, 4, 3, 3}, {4}, {.stride = {2000000000, 1}}), "make an output of"},
      {"output padding", refuse({2, 3, 4, 4}, {3, 4, 3, 3}, {4}, {.output_padding = {0, 1}}),
       "output_padding must be at least 0 and less than the stride 1 or the dilation 1, got 1"},
      {"nothing left", refuse({2, 3, 1, 1}, {3, 4, 2, 3}, {4}, {.padding = {1, 0}}),
       "make an output of 0 rows; padding 1 takes away 2 of them"},
      {"empty filter", refuse({2, 3, 4, 4}, {3, 4, 0, 3}, {4}), "is empty"},
      {"bias", refuse({2, 3, 4, 4}, {3, 4, 1, 1}, {3}), "bias should be f32[4] on cpu, got f32[3] on cpu"},
      {"dtypes",
       [] { conv_transpose2d(Tensor::zeros({2, 3, 4, 4}), Tensor::zeros({3, 4, 1, 1}, {.dtype = DType::f64}), {}); },
       "must have one dtype and one device"},
  };
}

OpCase case_of(const std::string& name, const std::vector<Variant>& variants, bool bias, bool exact) {
  return {.name = name,
          .calls = [variants, bias](const Shape& nchw) { return calls_of(nchw, variants, bias); },
          .bad_inputs = bad_inputs(),
          .exact_on_integers = exact};
}

/// In f32 and f64: a half sum is rounded before bias is added, and again behind it. tests/autograd/test_functions.cpp
/// has halves with bias.
OpCase with_bias(const std::string& name, const std::vector<Variant>& variants, bool exact) {
  OpCase result = case_of(name, variants, true, exact);
  result.dtypes = {DType::f32};
  return result;
}

const RegisterOp plain_case(case_of("conv_transpose2d", exact_variants(), false, true));
const RegisterOp bias_case(with_bias("conv_transpose2d with bias", exact_variants(), true));
const RegisterOp rounded_case(case_of("conv_transpose2d, many channels", rounded_variants(), false, false));
const RegisterOp rounded_bias_case(with_bias("conv_transpose2d with bias, many channels", rounded_variants(), false));

}  // namespace
