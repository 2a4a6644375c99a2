// Copies between dtypes: checks and choice of implementation.
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/cast/cast_implementations.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

void cast(const Tensor& source, const Out& destination) {
  require(source.defined() && destination.defined(), "cast: needs defined tensors, got {} and {}", describe(source),
          describe(destination));
  require(source.shape() == destination.shape() && source.device() == destination.device(),
          "cast: {} on {} does not fit {} on {}; shapes and devices must agree", describe(source),
          name_of(source.device()), describe(destination), name_of(destination.device()));
  require(source.storage() != destination.tensor().storage(),
          "cast: source and destination {} share memory; cast to a new tensor", describe(destination));
  note_traffic(source, destination);
  if constexpr (kHasCuda)
    if (const CudaOp op{"cast", destination}) return cuda::cast(source, destination);
  if (cpu::cast_supports(source, destination)) return cpu::cast(source, destination);
  reference::cast(source, destination);
}

}  // namespace tandem::kernels
