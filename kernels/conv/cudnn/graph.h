// A convolution as a graph of cuDNN's operations. Only in builds with cuDNN.
#pragma once

#include "kernels/conv/cudnn/conv_library.h"
#include "kernels/conv/cudnn/descriptor.h"

namespace tandem::kernels::cudnn {

/// A finalized operation graph: the convolution, then bias and ReLU, or a gradient, then ReLU and sums, in float.
/// Throws Error where cuDNN does not know such a graph.
Descriptor make_graph(const Functions& functions, cudnnHandle_t handle, const ConvTask& task);

}  // namespace tandem::kernels::cudnn
