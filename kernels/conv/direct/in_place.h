// The weight gradient of convolutions whose patches are read in place.
#pragma once

#include "tandem/kernels/conv/geometry.h"

namespace tandem::kernels::direct {

/// True where in_place_backward_weight can do it and is the faster one: one group, several taps that lie side by side,
/// and output channels that fill vectors of at least 8.
bool reads_patches_in_place(const ConvGeometry& g);

/// direct::backward_weight for these: reads patches from rows with padding, where gathering them would copy every value
/// once for each tap. T is float, Half or BFloat16.
template <typename T>
void in_place_backward_weight(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y, float* grad_w,
                              float* grad_bias);

}  // namespace tandem::kernels::direct
