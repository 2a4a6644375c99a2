// From a convolution to code of cuDNN that computes it. Only in builds with cuDNN.
#pragma once

#include "kernels/conv/cudnn/conv_library.h"
#include "kernels/conv/cudnn/descriptor.h"

#include <memory>
#include <optional>
#include <vector>

namespace tandem::kernels::cudnn {

/// The names of tensors in a plan.
enum TensorId : std::int64_t { kX = 1, kW, kY, kBias, kGate, kSums, kSum, kBiased, kGradient };

/// Something that can be executed, and the memory that it needs meanwhile.
struct Plan {
  Descriptor execution;
  std::int64_t workspace_bytes;
};

/// The plans for a task that cuDNN's heuristics advise, in their order, and that keep the promises of
/// ConvLibrary::supports. Each is made when it is asked for, which may take a while: some are compiled then.
class Plans {
 public:
  Plans(const Functions& functions, cudnnHandle_t handle, const ConvTask& task);

  /// Null if there are not so many.
  const Plan* at(std::size_t index, cudnnHandle_t handle);

 private:
  const Functions& functions_;
  DType dtype_;
  std::optional<Descriptor> graph_;  // none: cuDNN knows no such graph
  std::vector<Descriptor> configurations_;
  std::size_t tried_ = 0;  // configurations
  std::vector<std::unique_ptr<Plan>> plans_;
};

/// True if an engine with these notes may not be used for tensors of `dtype`.
bool breaks_promises(const std::vector<cudnnBackendNumericalNote_t>& notes, DType dtype);

}  // namespace tandem::kernels::cudnn
