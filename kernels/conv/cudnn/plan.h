// From a convolution to code of cuDNN that computes it. Only in builds with cuDNN.
#pragma once

#include "kernels/conv/cudnn/conv_library.h"
#include "kernels/conv/cudnn/descriptor.h"

#include <memory>

namespace tandem::kernels::cudnn {

/// The names of tensors in a plan.
enum TensorId : std::int64_t { kX = 1, kW, kY, kBias, kSum, kBiased };

/// Something that can be executed, and the memory that it needs meanwhile.
struct Plan {
  Descriptor graph;
  Descriptor configuration;
  Descriptor execution;
  std::int64_t workspace_bytes;
};

/// The first plan that cuDNN advises and that keeps the promises of ConvLibrary::supports; null if there is none.
std::unique_ptr<Plan> make_plan(const Functions& functions, cudnnHandle_t handle, const ConvTask& task);

/// True if an engine with these notes may not be used for tensors of `dtype`.
bool breaks_promises(const std::vector<cudnnBackendNumericalNote_t>& notes, DType dtype);

}  // namespace tandem::kernels::cudnn
