// From a convolution to code of cuDNN that computes it. Only in builds with cuDNN.
#pragma once

#include "tandem/kernels/conv/cudnn/conv_library.h"

#include <cudnn.h>

#include <memory>
#include <string>

namespace tandem::kernels::cudnn {

/// The plans for a task that cuDNN's heuristics advise, in their order, and that keep the promises of
/// ConvLibrary::supports. Each is made when it is asked for, which may take a while: some are compiled then.
/// use_library() must have been called; not for several threads at a time.
class Plans {
 public:
  /// There are none where cuDNN does not know such a graph, or no engine for it; refusal() has its words then.
  Plans(cudnnHandle_t handle, const ConvTask& task);
  ~Plans();

  /// True if there is a plan of this number.
  bool has(std::size_t number);
  const std::string& refusal() const;

  /// Bytes of memory that plan `number`, which there is, needs while it runs.
  std::int64_t workspace_bytes(std::size_t number) const;

  /// Enqueues plan `number`, which there is, on the handle's stream. Throws Error with cuDNN's words.
  void run(cudnnHandle_t handle, const ConvTensors& tensors, void* workspace, std::size_t number) const;

 private:
  struct Search;
  std::unique_ptr<Search> search_;
};

}  // namespace tandem::kernels::cudnn
