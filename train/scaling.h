// What more ranks would gain: from the time of a run's own steps, and what messages between hosts cost.
// Example:
//     #include "tandem/comm/ddp/distributed_data_parallel.h"
//     void tell(const EpochRecord& last, const comm::DistributedDataParallel& replicas) {
//       if (const auto scaling = predict_scaling(last, replicas.bucket_sizes(), comm::usual_message_costs()))
//         std::printf("64 hosts: %.1f times as many images per second\n", scaling->predicted.back().factor);
//     }
#pragma once

#include "tandem/comm/cost/speed_up.h"
#include "tandem/train/records.h"

#include <optional>
#include <vector>

namespace tandem::train {

/// From a rank's times in an epoch: all that is not waiting, divided by its steps. The window is that of the run's own
/// exchange (from the first bucket to the end of the backward pass); on one rank, from when the first bucket would be
/// full or, where the record does not say, all of the backward pass. Nothing where the record has no times or no step,
/// and for costs by which long messages take no time. Times of a GPU are not the host's (PhaseTimes): they say nothing
/// here.
std::optional<Scaling> predict_scaling(const EpochRecord& epoch, const std::vector<std::int64_t>& bucket_bytes,
                                       const comm::MessageCosts& costs);

}  // namespace tandem::train
