// Tensor cores that four warps use together (wgmma), with operands that the memory system fetches by itself (TMA), on
// GPUs of compute capability 9.0: f16 and bf16, one group, strides of 1, channels in multiples of 8, tensors that begin
// at multiples of 16 bytes. A gradient that comes with a mask is copied first.
#pragma once

#include "tandem/kernels/conv/operands.h"

namespace tandem::kernels::cuda::warpgroup {

ConvObstacle obstacle;
/// True where this is taken before implicit_gemm, by layers that an H100 timed (docs/kernels/conv.md): several taps,
/// products of 128 columns and 64 depths or more; for images so many tiles that a quarter of the GPU has one, for w
/// 1024 output pixels.
bool pays(PassKind pass, const ConvGeometry& g);
/// True where it is taken before cuDNN as well: the gradient of images whose tiles fill the GPU. At batch 128 it was
/// faster; at 512 up to 9 % slower, but without the further passes that a layer below costs cuDNN.
bool beats_library(PassKind pass, const ConvGeometry& g);
ForwardPass forward;
BackwardInputPass backward_input;
BackwardInputBelowPass backward_input_below;
BackwardWeightPass backward_weight;

}  // namespace tandem::kernels::cuda::warpgroup
