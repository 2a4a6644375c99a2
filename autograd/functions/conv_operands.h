// The operands of a convolution, for kernels. Internal to autograd/functions.
#pragma once

#include "autograd/grad_mode.h"
#include "core/tensor.h"

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

}  // namespace tandem::autograd
