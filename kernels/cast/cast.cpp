// Copies between dtypes: checks and choice of implementation.
#include "kernels/cast/cast.h"
#include "kernels/cuda_choice.h"
#include "kernels/written.h"

namespace tandem::kernels {

void cast(const Tensor& source, const Tensor& destination) {
  require(source.defined() && destination.defined(), "cast: needs defined tensors, got {} and {}", describe(source),
          describe(destination));
  require(source.shape() == destination.shape() && source.device() == destination.device(),
          "cast: {} on {} does not fit {} on {}; shapes and devices must agree", describe(source),
          name_of(source.device()), describe(destination), name_of(destination.device()));
  require(source.storage() != destination.storage(),
          "cast: source and destination {} share memory; cast to a new tensor", describe(destination));
  mark_written("cast", destination);
  if constexpr (kHasCuda)
    if (const CudaOp op{"cast", destination}) return cuda::cast(source, destination);
  if (cpu::cast_supports(source, destination)) return cpu::cast(source, destination);
  reference::cast(source, destination);
}

}  // namespace tandem::kernels
