// Collectives of tensors: checked, and made ready for a backend. Internal to comm/.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/host_staging.h"
#include "tandem/core/out.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace tandem::comm {

/// A Collective whose memory are tensors. Where input and output are the same tensor, it works in place.
struct TensorCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  StagedTensors tensors = {};
  ReduceOp op = ReduceOp::sum;
  int peer = 0;
  int tag = 0;
  std::vector<std::int64_t> counts = {};
  std::vector<std::int64_t> receive_counts = {};
};

/// Throws Error unless each tensor is dense, both have one dtype and one device, they have the elements that counts
/// ask for, the reduction is one of this dtype, and peer and tag are in their ranges.
void check_collective(const TensorCollective& collective, const Place& place);

/// Starts it on the backend, which takes this device; halves by way of f32 where the backend does not reduce them.
std::unique_ptr<Work> start_collective(Backend& backend, const TensorCollective& collective);
/// The same to its end.
void run_collective(Backend& backend, const TensorCollective& collective);

}  // namespace tandem::comm
