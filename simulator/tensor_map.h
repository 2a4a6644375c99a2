// Tensor maps: tensors in global memory of which a copy fetches a tile into shared memory. (PTX ISA, "Tensor copies";
// CUDA driver API, cuTensorMapEncodeTiled)
#pragma once

#include "tandem/simulator/include/cuda.h"

#include <cstdint>
#include <source_location>

namespace tandem::simulator {

/// cp.async.bulk.tensor: starts copying the tile from `coordinates` on (one for each dimension, innermost first) to
/// `shared`; what lies outside of the tensor becomes zero. It arrives at `barrier` with the bytes of a whole tile.
void start_tile_copy(void* shared, const CUtensorMap* map, std::uint64_t* barrier, const int* coordinates,
                     unsigned rank, std::source_location where);

}  // namespace tandem::simulator
