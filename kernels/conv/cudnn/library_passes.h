// Passes of a convolution by a library: what it does not fuse is done before or after.
#pragma once

#include "tandem/kernels/conv/cudnn/conv_library.h"
#include "tandem/kernels/conv/operands.h"

namespace tandem::kernels::cuda {

/// True if the library can do the pass on these tensors; a gradient that comes with a mask is copied first.
bool library_takes(ConvLibrary& library, const ConvTask& task, const ConvTensors& tensors);

/// y and the mask, if it is defined. Where the library does not fuse bias and ReLU they are passes of their own, and
/// halves are rounded twice.
void library_forward(ConvLibrary& library, const ConvGeometry& g, const Tensor& x, const Tensor& w,
                     const Epilogue& epilogue, const Out& y, int plan = 0);

/// The task that library_forward() hands to the library: with bias and ReLU where that fuses them.
ConvTask library_forward_task(ConvLibrary& library, const ConvGeometry& g, const Tensor& x, const Tensor& w,
                              const Epilogue& epilogue, const Out& y);

/// grad_x and what the layer below wants, by one graph where the library has it; `x`, that layer's output, may be
/// undefined, and then it is done after.
void library_backward_input(ConvLibrary& library, const ConvGeometry& g, const Tensor& grad_y, const Tensor& w,
                            const Tensor& x, const LayerBelow& below, const Out& grad_x, int plan = 0);

/// The task that library_backward_input() hands to the library: with the mask of the layer below, and the sums of its
/// bias, where that fuses them.
ConvTask library_backward_input_task(ConvLibrary& library, const ConvGeometry& g, const Tensor& grad_y, const Tensor& w,
                                     const Tensor& x, const LayerBelow& below, const Out& grad_x);

/// True if one graph does both.
bool library_fuses_layer_below(ConvLibrary& library, const ConvGeometry& g, const Tensor& x, const Tensor& w);

/// `open` = grad_y where y is positive, and grad_bias = its sums, by one graph. Throws where the library has none.
void library_backward_relu_bias(ConvLibrary& library, const ConvGeometry& g, const Tensor& grad_y, const Tensor& y,
                                const Out& open, const Out& grad_bias);

}  // namespace tandem::kernels::cuda
