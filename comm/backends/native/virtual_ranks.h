// Collectives of the native backend on a simulated network, by its clock.
// Example:
//     #include "tandem/comm/schedules/algorithms.h"
//     #include "tandem/core/out.h"
//     const NetworkModel model = parse_network_model("alpha=50us beta=1GB hosts=2");
//     VirtualRanks ranks(model, std::make_shared<const Schedule>(ring_all_reduce(2)));
//     const std::vector<Tensor> tensors{Tensor::full({1000}, 1.0), Tensor::full({1000}, 2.0)};
//     const double seconds = ranks.run([&](int rank) {  // 104 us; the tensors are full of 3
//       return in_place(CollectiveKind::all_reduce, Out(tensors[static_cast<std::size_t>(rank)]));
//     });
#pragma once

#include "tandem/comm/backends/native/native_engine.h"
#include "tandem/comm/transports/simulated/virtual_network.h"

#include <functional>
#include <memory>
#include <vector>

namespace tandem::comm {

/// All ranks of a network on a virtual clock (VirtualNetwork), each with an engine of the native backend, in this
/// thread. Every run of the same collectives takes the same time.
class VirtualRanks {
 public:
  /// `all_reduce`, a schedule of as many ranks, is that of all-reduces. Throws Error for a model without hosts.
  VirtualRanks(const NetworkModel& model, const std::shared_ptr<const Schedule>& all_reduce,
               const SegmentOptions& segments = {});

  int size() const { return static_cast<int>(engines_.size()); }

  /// Carries out one collective of all ranks, of which `of_rank` gives each rank's part, and returns the seconds that
  /// it takes by the network's clock: from the common beginning to the end of the last rank. Throws Error, naming who
  /// waits for whom, where a message is lost or a rank's part fits no other's.
  double run(const std::function<Collective(int rank)>& of_rank);

 private:
  VirtualNetwork network_;
  std::vector<std::unique_ptr<NativeEngine>> engines_;
};

}  // namespace tandem::comm
