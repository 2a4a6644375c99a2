// The forward convolution that the input gradient shares.
#pragma once

#include "kernels/conv/geometry.h"

namespace tandem::kernels::direct {

/// y = convolution `g` of x. With `turned`, g is backward_input_as_forward of the convolution that w belongs to: the
/// kernel is turned by 180 degrees, and inputs and outputs change places.
template <typename T>
void convolve(const ConvGeometry& g, const T* x, const float* w, bool turned, const ConvEpilogue& epilogue, T* y);

}  // namespace tandem::kernels::direct
