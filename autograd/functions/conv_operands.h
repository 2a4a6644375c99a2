// The operands of a convolution, for kernels. Internal to autograd/functions.
#pragma once

#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/record.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/tensor.h"
#include "tandem/kernels/conv/plan.h"

#include <vector>

namespace tandem::autograd {

struct ConvOperands {
  Tensor images, filters, bias;
};

/// Each as kernels take it: itself where it is dense already, else a copy that is not on the tape. Undefined bias stays
/// so.
inline ConvOperands dense_operands(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const NoGrad no_grad;
  return {x.contiguous(Layout::channels_last), weight.contiguous(Layout::channels_last),
          bias.defined() ? bias.contiguous() : bias};
}

/// What the layer asks of a plan: its forward pass, and gradients only where they are recorded.
inline kernels::ConvRequest request_for(std::string_view op, kernels::PassKind forward, const Tensor& x,
                                        const Tensor& weight) {
  const bool records = grad_enabled();
  return {
      .forward = forward, .grad_x = records && requires_grad(x), .grad_w = records && requires_grad(weight), .op = op};
}

/// conv_bias_relu() of an x that has been brought to the weight's dtype, by a plan for the dense operands.
Tensor conv_bias_relu_by(const kernels::ConvPlan& plan, const ConvOperands& operands, const Tensor& x,
                         const Tensor& weight, const Tensor& bias);

/// conv2d() likewise; with `moments`, these are made where the plan has them.
Tensor conv2d_by(const kernels::ConvPlan& plan, const ConvOperands& operands, const Tensor& x, const Tensor& weight,
                 const Tensor& bias, Tensor* moments = nullptr);

/// The gradients of x and weight that the context needs, at their places among its three, from that of y.
void add_conv2d_gradients(const BackwardContext& context, const kernels::ConvPlan& plan, const SavedTensor& x,
                          const SavedTensor& weight, const Tensor& grad_y, std::vector<Tensor>& gradients);

}  // namespace tandem::autograd
