// Op cases: conv2d, conv_bias_relu, conv_bias_relu_pool and conv2d_pool.
#include "tandem/autograd/functions/conv2d.h"
#include "tandem/autograd/functions/conv2d_pool.h"
#include "tandem/autograd/functions/conv_bias_relu.h"
#include "tandem/autograd/functions/conv_bias_relu_pool.h"
#include "tandem/kernels/pool/max_pool2d.h"
#include "tandem/kernels/pool/max_pool2d_implementations.h"
#include "tests/op_cases/op_case.h"

#include <limits>

using namespace tandem;
using namespace tandem::test;
using kernels::Conv2dOptions;
using kernels::ConvImpl;

namespace {

struct Variant {
  std::string name;
  std::int64_t outputs, height, width;  // of the weight
  Conv2dOptions options;
  bool bias = true;
  bool depthwise = false;  // as many groups as channels
};

const std::vector<Variant>& exact_variants() {
  static const std::vector<Variant> all = {
      {"1x1", 4, 1, 1, {}},
      {"3x3, padding 1", 5, 3, 3, {.padding = {1, 1}}},
      {"3x3, stride 2, padding 1, no bias", 5, 3, 3, {.stride = {2, 2}, .padding = {1, 1}}, false},
      {"3x2, stride 2x1, padding 2x1", 3, 3, 2, {.stride = {2, 1}, .padding = {2, 1}}},
      {"3x3, dilation 2, padding 2", 7, 3, 3, {.padding = {2, 2}, .dilation = {2, 2}}},
      {"3x3, padding 1, depthwise", 2, 3, 3, {.padding = {1, 1}}, true, true},
      {"5x5, padding 2", 2, 5, 5, {.padding = {2, 2}}},
      // With 8 input channels these two run on tensor cores.
      {"1x1, stride 2, 16 outputs", 16, 1, 1, {.stride = {2, 2}}},
      {"5x3, padding 2x1, dilation 1x2, no bias", 8, 5, 3, {.padding = {2, 1}, .dilation = {1, 2}}, false},
  };
  return all;
}

/// Winograd's transforms serve these where there are enough channels; they round even whole numbers.
const std::vector<Variant>& rounded_variants() {
  static const std::vector<Variant> all = {
      {"3x3, padding 1", 16, 3, 3, {.padding = {1, 1}}},
      {"3x3, no bias", 32, 3, 3, {}, false},
      {"3x3, padding 2x0", 16, 3, 3, {.padding = {2, 0}}},
  };
  return all;
}

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();  // twice as much overflows

using Function = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Conv2dOptions&);

/// What comes after the convolution.
enum class End { nothing, relu, relu_and_pool, pool };

bool is_pooled(End end) { return end == End::relu_and_pool || end == End::pool; }

Tensor reference_of(const std::vector<Tensor>& in, Conv2dOptions options, End end) {
  options.impl = ConvImpl::reference;
  std::vector<Tensor> dense;
  for (const Tensor& tensor : in) dense.push_back(tensor.contiguous(Layout::channels_last));
  const Tensor bias = dense.size() > 2 ? dense[2] : Tensor();
  const Shape shape = kernels::conv2d_output_shape(in[0].shape(), in[1].shape(), options);
  const Tensor y = Tensor::empty(shape, in[0].options(Layout::channels_last));
  if (end == End::relu || end == End::relu_and_pool) {
    kernels::conv_bias_relu_forward(dense[0], dense[1], bias, options, Out(y), Out(Tensor()));
  } else {
    kernels::conv2d_forward(dense[0], dense[1], bias, options, Out(y));
  }
  if (!is_pooled(end)) return y;
  const Tensor pooled = Tensor::empty({shape[0], shape[1], shape[2] / 2, shape[3] / 2}, y.options());
  kernels::reference::max_pool2d_forward(y, {.kernel = {2, 2}, .stride = {2, 2}}, Out(pooled), {});
  return pooled;
}

OpCase case_of(const std::string& name, Function function, End end, bool exact) {
  const auto calls = [function, end, exact](const Shape& nchw) {
    std::vector<OpCall> result;
    for (const Variant& variant : exact ? exact_variants() : rounded_variants()) {
      Conv2dOptions options = variant.options;
      if (variant.depthwise) options.groups = nchw[1];
      const std::int64_t outputs = variant.depthwise ? variant.outputs * nchw[1] : variant.outputs;
      const Shape weight{outputs, nchw[1] / options.groups, variant.height, variant.width};
      const bool fits = nchw[2] + 2 * options.padding[0] > options.dilation[0] * (variant.height - 1) &&
                        nchw[3] + 2 * options.padding[1] > options.dilation[1] * (variant.width - 1);
      if (!fits) continue;
      const Shape y = kernels::conv2d_output_shape(nchw, weight, options);
      if (is_pooled(end) && (y[2] < 2 || y[3] < 2)) continue;
      OpCall call;
      call.variant = variant.name;
      call.inputs = {{.shape = nchw}, {.shape = weight}};
      if (variant.bias) call.inputs.push_back({.shape = {outputs}});
      call.function = [=](const std::vector<Tensor>& in) {
        return function(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), options);
      };
      call.reference = [=](const std::vector<Tensor>& in) { return reference_of(in, options, end); };
      // Forward sums over the filter, backward over outputs of a window or over all pixels.
      const std::int64_t filter = element_count(weight), pixels = nchw[0] * (nchw[2] + 4) * (nchw[3] + 4);
      call.terms = static_cast<double>(std::max(filter, pixels));
      result.push_back(call);
    }
    return result;
  };
  const auto refuse = [function](const Shape& x, const Shape& w, const Shape& b, const Conv2dOptions& options = {}) {
    return [=] { function(Tensor::zeros(x), Tensor::zeros(w), Tensor::zeros(b), options); };
  };
  return {
      .name = name,
      .calls = calls,
      .bad_inputs = {{"channels", refuse({2, 3, 8, 8}, {4, 2, 3, 3}, {4}), "channels do not fit"},
                     {"no image", refuse({3, 8, 8}, {4, 3, 3, 3}, {4}), "needs x [N,C,H,W]"},
                     {"large kernel", refuse({2, 3, 4, 4}, {4, 3, 5, 5}, {4}), "the kernel spans 5 in height"},
                     {"stride 0", refuse({2, 3, 4, 4}, {4, 3, 1, 1}, {4}, {.stride = {0, 1}}), "at least 1"},
                     {"huge dilation", refuse({2, 3, 4, 4}, {4, 3, 3, 3}, {4}, {.dilation = {1, kHuge}}), "at most"},
                     {"huge padding", refuse({2, 3, 4, 4}, {4, 3, 3, 3}, {4}, {.padding = {kHuge, 0}}), "at most"},
                     {"bias", refuse({2, 3, 4, 4}, {4, 3, 1, 1}, {3}), "bias should have shape [4]"},
                     {"dtypes",
                      [function] {
                        function(Tensor::zeros({2, 3, 4, 4}), Tensor::zeros({4, 3, 1, 1}, {.dtype = DType::f64}),
                                 Tensor(), {});
                      },
                      "x should be f64, got f32[2, 3, 4, 4]"}},
      .exact_on_integers = exact};
}

const RegisterOp conv2d_case(case_of("conv2d", autograd::conv2d, End::nothing, true));
const RegisterOp conv_bias_relu_case(case_of("conv_bias_relu", autograd::conv_bias_relu, End::relu, true));
const RegisterOp conv2d_rounded_case(case_of("conv2d, many channels", autograd::conv2d, End::nothing, false));
const RegisterOp conv_bias_relu_rounded_case(case_of("conv_bias_relu, many channels", autograd::conv_bias_relu,
                                                     End::relu, false));

/// In f32 and f64: rounded to half, numbers of one window become equal, and another one may win than in f64. Pooling of
/// halves is tests/kernels/test_cuda_conv_tensor_cores.cpp's and tests/kernels/test_cuda_conv_pool_moments.cpp's.
OpCase pooled_case(const std::string& name, Function function, End end) {
  OpCase result = case_of(name, function, end, true);
  result.dtypes = {DType::f32};
  return result;
}
const RegisterOp conv_bias_relu_pool_case(pooled_case("conv_bias_relu_pool", autograd::conv_bias_relu_pool,
                                                      End::relu_and_pool));
const RegisterOp conv2d_pool_case(pooled_case("conv2d_pool", autograd::conv2d_pool, End::pool));

}  // namespace
