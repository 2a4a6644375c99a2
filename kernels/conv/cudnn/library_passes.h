// Passes of a convolution by a library: what it does not fuse is done before or after.
#pragma once

#include "kernels/conv/cudnn/conv_library.h"
#include "kernels/conv/implementations.h"

namespace tandem::kernels::cuda {

/// True if the library can do the pass on these tensors; a gradient that comes with a mask is copied first.
bool library_takes(ConvLibrary& library, const ConvTask& task, const ConvTensors& tensors);

/// y and the mask, if it is defined. Where the library does not fuse bias and ReLU they are passes of their own, and
/// halves are rounded twice.
void library_forward(ConvLibrary& library, const ConvGeometry& g, const Tensor& x, const Tensor& w,
                     const Epilogue& epilogue, const Tensor& y, int plan = 0);

/// The task that library_forward() hands to the library: with bias and ReLU where that fuses them.
ConvTask library_forward_task(ConvLibrary& library, const ConvGeometry& g, const Tensor& x, const Tensor& w,
                              const Epilogue& epilogue, const Tensor& y);

/// grad_x and what the layer below wants, by one graph where the library has it; `x`, that layer's output, may be
/// undefined, and then it is done after.
void library_backward_input(ConvLibrary& library, const ConvGeometry& g, const Tensor& grad_y, const Tensor& w,
                            const Tensor& x, const LayerBelow& below, const Tensor& grad_x, int plan = 0);

/// The task that library_backward_input() hands to the library: with the mask of the layer below, and the sums of its
/// bias, where that fuses them.
ConvTask library_backward_input_task(ConvLibrary& library, const ConvGeometry& g, const Tensor& grad_y, const Tensor& w,
                                     const Tensor& x, const LayerBelow& below, const Tensor& grad_x);

/// True if one graph does both.
bool library_fuses_layer_below(ConvLibrary& library, const ConvGeometry& g, const Tensor& x, const Tensor& w);

/// `open` = grad_y where y is positive, and grad_bias = its sums, by one graph. Throws where the library has none.
void library_backward_relu_bias(ConvLibrary& library, const ConvGeometry& g, const Tensor& grad_y, const Tensor& y,
                                const Tensor& open, const Tensor& grad_bias);

/// What a layer below wants, done to a gradient that is there.
void finish_for_layer_below(const Tensor& grad_x, const LayerBelow& below);

/// grad_y where the bits of `mask` are set, else 0, in new memory; grad_y itself without a mask.
Tensor masked_gradient(const Tensor& grad_y, const Tensor& mask);

}  // namespace tandem::kernels::cuda
