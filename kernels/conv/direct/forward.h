// The forward convolution that the input gradient shares.
#pragma once

#include "tandem/kernels/conv/geometry.h"

namespace tandem::kernels::direct {

/// y = convolution `g` of x. With `flipped`, g is backward_input_as_forward of the convolution that w belongs to: the
/// kernel is rotated by 180 degrees, and inputs and outputs change places.
template <typename T>
void convolve(const ConvGeometry& g, const T* x, const float* w, bool flipped, const ConvEpilogue& epilogue, T* y);

}  // namespace tandem::kernels::direct
