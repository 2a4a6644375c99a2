// Depthwise convolution: one input and one output channel per group, so channels themselves fill the vectors.
#pragma once

#include "tandem/kernels/conv/geometry.h"

namespace tandem::kernels::direct {

inline bool is_depthwise(const ConvGeometry& g) { return g.groups > 1 && g.group_c() == 1 && g.group_k() == 1; }

template <typename T>
void depthwise_forward(const ConvGeometry& g, const T* x, const float* w, const ConvEpilogue& epilogue, T* y);
template <typename T>
void depthwise_backward_input(const ConvGeometry& g, MaskedGradient<T> grad_y, const float* w, T* grad_x);
template <typename T>
void depthwise_backward_weight(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y, float* grad_w,
                               float* grad_bias);

}  // namespace tandem::kernels::direct
