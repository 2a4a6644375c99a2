// Convolution on the CPU by Winograd's algorithm: a quarter of the products, larger rounding errors. T is float, Half
// or BFloat16. When it runs is said in winograd/choice.h.
#pragma once

#include "tandem/kernels/conv/geometry.h"

namespace tandem::kernels::winograd {

template <typename T>
void forward(const ConvGeometry& g, const T* x, const float* w, const ConvEpilogue& epilogue, T* y);
template <typename T>
void backward_input(const ConvGeometry& g, MaskedGradient<T> grad_y, const float* w, T* grad_x);
/// grad_bias may be null.
template <typename T>
void backward_weight(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y, float* grad_w, float* grad_bias);

}  // namespace tandem::kernels::winograd
