// Differentiable transposed two-dimensional convolution.
#include "tandem/autograd/functions/conv_transpose2d.h"

#include "tandem/autograd/functions/augment.h"
#include "tandem/autograd/functions/conv_operands.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/elementwise/add.h"

#include <algorithm>
#include <limits>

namespace tandem::autograd {

namespace {

constexpr std::string_view kOp = "conv_transpose2d";

/// Of options and sizes along one dimension: sums and products of two of them do not overflow.
constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

/// Output size along one dimension.
std::int64_t output_size(const Shape& x, const Shape& weight, const ConvTranspose2dOptions& options, int dim) {
  const auto at = static_cast<std::size_t>(dim);
  const std::int64_t stride = options.stride[at], padding = options.padding[at], dilation = options.dilation[at],
                     more = options.output_padding[at];
  require(stride >= 1 && dilation >= 1 && padding >= 0 && std::max({stride, dilation, padding}) <= kMost,
          "{}: stride and dilation must be at least 1, padding at least 0 and all at most {}, got stride {}, dilation "
          "{}, padding {}",
          kOp, kMost, stride, dilation, padding);
  require(more >= 0 && more < std::max(stride, dilation),
          "{}: output_padding must be at least 0 and less than the stride {} or the dilation {}, got {}", kOp, stride,
          dilation, more);
  const std::int64_t input = x[2 + dim], kernel = weight[2 + dim];
  require(input >= 1 && kernel >= 1 && std::max(input, kernel) <= kMost, "{}: x {} or the kernel of weight {} is empty",
          kOp, x, weight);
  const std::int64_t size = (input - 1) * stride - 2 * padding + dilation * (kernel - 1) + more + 1;
  require(size >= 1 && size <= kMost,
          "{}: x {} and weight {} make an output of {} {}; padding {} takes away {} of them", kOp, x, weight, size,
          dim == 0 ? "rows" : "columns", padding, 2 * padding);
  return size;
}

/// The convolution from y to x.
kernels::Conv2dOptions convolution_options(const ConvTranspose2dOptions& options) {
  return {.stride = options.stride,
          .padding = options.padding,
          .dilation = options.dilation,
          .groups = options.groups,
          .impl = options.impl};
}

void check_bias(const Tensor& bias, const Tensor& y) {
  if (!bias.defined()) return;
  require(bias.shape() == Shape{y.size(1)} && bias.dtype() == y.dtype() && bias.device() == y.device(),
          "{}: bias should be {}[{}] on {}, got {} on {}", kOp, name_of(y.dtype()), y.size(1), name_of(y.device()),
          bias, name_of(bias.device()));
}

/// One number for each channel of [N, K, P, Q].
Tensor over_pixels(const Tensor& bias, const Shape& y) { return bias.view({1, y[1], 1, 1}).expand(y); }

}  // namespace

Shape conv_transpose2d_output_shape(const Shape& x, const Shape& weight, const ConvTranspose2dOptions& options) {
  require(x.rank() == 4 && weight.rank() == 4, "{}: needs x [N,C,H,W] and weight [C,K/groups,R,S], got x {}, weight {}",
          kOp, x, weight);
  const std::int64_t groups = options.groups;
  require(
      groups >= 1 && weight[0] == x[1] && x[1] % groups == 0 && weight[1] >= 1,
      "{}: channels do not fit: x {}, weight {}, groups {}; weight should be [{}, K/groups, R, S] and groups divide "
      "{}",
      kOp, x, weight, groups, x[1], x[1]);
  return {x[0], weight[1] * groups, output_size(x, weight, options, 0), output_size(x, weight, options, 1)};
}

namespace {

/// Where output_padding is less than the stride: of y a convolution then makes the shape of x.
Tensor transposed(const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const ConvTranspose2dOptions& options) {
  constexpr Layout kLayout = Layout::channels_last;
  const Shape y_shape = conv_transpose2d_output_shape(input.shape(), weight.shape(), options);
  const Tensor x = input_for(OpKind::convolution, input, weight);
  require(x.dtype() == weight.dtype() && x.device() == weight.device(),
          "{}: x {} on {} and weight {} on {} must have one dtype and one device; use cast or to", kOp, x,
          name_of(x.device()), weight, name_of(weight.device()));
  const Tensor y = Tensor::empty(y_shape, x.options(kLayout));
  check_bias(bias, y);
  const ConvOperands operands = dense_operands(x, weight, bias);
  kernels::ConvRequest request = request_for(kOp, kernels::PassKind::forward, x, weight);
  request.grad_x = true;  // which is y here
  const kernels::ConvPlan plan = kernels::plan_conv(y, operands.filters, convolution_options(options), request);
  unrecorded([&] {
    kernels::conv2d_backward_input(plan, operands.images, operands.filters, Out(y));
    if (bias.defined()) kernels::add(y, over_pixels(operands.bias, y_shape), Out(y));
  });
  if (!should_record({x, weight, bias})) return y;

  const SavedTensor saved_x(requires_grad(weight) ? operands.images : Tensor()),
      saved_weight(requires_grad(x) ? operands.filters : Tensor());
  return record(kOp, {x, weight, bias}, y, [=](const BackwardContext& context) {
    const Tensor grad_y = context.grad_output().contiguous(kLayout);
    std::vector<Tensor> gradients(3);
    if (context.needs(2)) {
      gradients[2] = context.new_gradient(2);
      kernels::conv2d_backward_bias(grad_y, Out(gradients[2]));
    }
    if (context.needs(1)) {
      gradients[1] = context.new_gradient(1, kLayout);
      kernels::conv2d_backward_weight(plan, grad_y, saved_x.get(), Out(gradients[1]));
    }
    if (context.needs(0)) {
      gradients[0] = context.new_gradient(0, kLayout);
      kernels::conv2d_forward(plan, grad_y, saved_weight.get(), {}, Out(gradients[0]));
    }
    return gradients;
  });
}

}  // namespace

Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dOptions& options) {
  require(input.defined() && weight.defined(), "{}: needs a defined x and weight, got {} and {}", kOp, input, weight);
  require(is_floating(input.dtype()) && is_floating(weight.dtype()),
          "{}: needs a floating x and weight, got {} and {}; use cast", kOp, input, weight);
  conv_transpose2d_output_shape(input.shape(), weight.shape(), options);
  // A whole stride of output_padding is a row or column of zeros behind x.
  const HeightWidth more = options.output_padding, stride = options.stride;
  const HeightWidth strides{more.height / stride.height, more.width / stride.width};
  if (strides == 0) return transposed(input, weight, bias, options);
  ConvTranspose2dOptions rest = options;
  rest.output_padding = {more.height % stride.height, more.width % stride.width};
  return transposed(pad2d(input, {.right = strides.width, .bottom = strides.height}), weight, bias, rest);
}

}  // namespace tandem::autograd
