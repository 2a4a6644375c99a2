// Who runs a convolution on a GPU, by rule: what all passes go by.
#pragma once

#include "tandem/kernels/conv/cudnn/conv_library.h"
#include "tandem/kernels/conv/families.h"
#include "tandem/kernels/conv/plan.h"

namespace tandem::kernels::cuda {

struct FamilyChoice {
  const ConvFamily* family;
  std::string_view reason;  // why it is not a faster one; "" for the fastest
};

/// The fastest family for all passes of a layer; `impl` reference asks for the first one, others for those that they
/// stand for. Single passes may go to others: family_for().
FamilyChoice choose_family(const ConvGeometry& g, ConvImpl impl, const Operands& operands);

/// The same, where one line says that a fast one does not run. Throws for onednn.
FamilyChoice choose(const ConvGeometry& g, ConvImpl impl, const Operands& operands);

/// The family for one pass of a layer that `chosen` runs: a faster one that takes such passes over, or the next slower
/// one where `chosen` does not have the pass.
const ConvFamily& family_for(PassKind pass, const ConvFamily& chosen, const ConvGeometry& g, const Operands& operands);

/// cuDNN for a pass over x, w and y or their gradients; null for our kernels, which take empty tensors, too, and images
/// of few channels.
ConvLibrary* select_library(const ConvGeometry& g, ConvImpl impl, ConvPass pass, const Operands& operands);

/// The library or the family of one pass. `all` counts every tensor that a family must be able to read and write,
/// `operands` those that a library needs.
ConvRunner choose_runner(PassKind pass, const ConvGeometry& g, ConvImpl impl, const Operands& operands,
                         const Operands& all);

/// What a library is asked for in forward, backward_input or backward_weight.
ConvPass library_pass(PassKind pass);

/// What a convolution and something that follows it save in one pass of ours, where a library would convolve faster.
struct FusionSavings {
  double bytes;  // of memory traffic, for each output of the convolution
  const ConvFamily& family;
  double computed = 1.0;  // share of the outputs that the one pass computes
};

/// True if by what is assumed of both that is more than the library gains.
bool pays_beside_library(const ConvGeometry& g, const FusionSavings& savings);

}  // namespace tandem::kernels::cuda
