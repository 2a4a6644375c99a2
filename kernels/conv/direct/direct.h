// Convolution on the CPU of every geometry: rows of input patches times packed weights, plain sums in float. T is
// float, Half or BFloat16; all have elements.
#pragma once

#include "tandem/kernels/conv/geometry.h"

namespace tandem::kernels::direct {

template <typename T>
void forward(const ConvGeometry& g, const T* x, const float* w, const ConvEpilogue& epilogue, T* y);
template <typename T>
void backward_input(const ConvGeometry& g, MaskedGradient<T> grad_y, const float* w, T* grad_x);
/// grad_bias may be null.
template <typename T>
void backward_weight(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y, float* grad_w, float* grad_bias);

}  // namespace tandem::kernels::direct
