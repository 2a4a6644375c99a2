// Who runs a convolution on a GPU, by rule: what all passes go by.
#pragma once

#include "kernels/conv/cudnn/conv_library.h"
#include "kernels/conv/implementations.h"

namespace tandem::kernels::cuda {

std::string_view name_of(Family family);

/// The family for the tensors of one pass. One line says where a fast one does not run. Throws for onednn.
Family choose(const ConvGeometry& g, ConvImpl impl, DType dtype, std::initializer_list<Tensor> tensors);

/// Whether a pass that would go to implicit_gemm goes to stationary weights.
bool is_for_stationary(StationaryPass pass, const ConvGeometry& g, DType dtype, std::initializer_list<Tensor> tensors);

/// cuDNN for a pass; null for our kernels, which take empty tensors, too, and images of few channels.
ConvLibrary* select_library(const ConvGeometry& g, ConvImpl impl, ConvPass pass, const ConvTensors& tensors);

/// What a convolution and something that follows it save in one pass of ours, where a library would convolve faster.
struct FusionSavings {
  double bytes;  // of memory traffic, for each output of the convolution
  Family family;
};

/// True if by what is assumed of both that is more than the library gains.
bool pays_beside_library(const ConvGeometry& g, const FusionSavings& savings);

}  // namespace tandem::kernels::cuda
