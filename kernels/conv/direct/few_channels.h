// The weight gradient of convolutions of few channels, as first layers of networks are.
#pragma once

#include "kernels/conv/geometry.h"

namespace tandem::kernels::direct {

/// True where few_channels_backward_weight does it, and is the faster one.
bool has_few_channels(const ConvGeometry& g);

/// direct::backward_weight for these: reads patches in place, where gathering them would take longer than the sums. T is
/// float, Half or BFloat16.
template <typename T>
void few_channels_backward_weight(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y, float* grad_w,
                                  float* grad_bias);

}  // namespace tandem::kernels::direct
