// Convolution on the CPU by oneDNN, of images of floats. Only in builds with oneDNN (TANDEM_HAS_ONEDNN).
#pragma once

#include "tandem/kernels/conv/direct/direct.h"

namespace tandem::kernels::onednn {

bool supports(const ConvGeometry& g);
/// Measured: with few input channels our direct kernels, which fuse the mask, are level; otherwise the library wins.
/// That is where each thread has images of its own, not only rows of one.
bool pays(const ConvGeometry& g);
decltype(direct::forward<float>) forward;
decltype(direct::backward_input<float>) backward_input;
decltype(direct::backward_weight<float>) backward_weight;

}  // namespace tandem::kernels::onednn
