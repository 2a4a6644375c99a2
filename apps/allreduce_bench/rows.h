// What is measured, and what comes out.
#pragma once

#include "apps/allreduce_bench/collectives.h"
#include "tandem/comm/collective.h"
#include "tandem/comm/transports/simulated/network_model.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tandem::allreduce_bench {

struct BenchOptions {
  std::vector<const BenchCollective*> collectives;
  std::vector<std::string> backends;
  std::int64_t replicas = 1;                 ///< ranks that are threads of this process, of backend threads
  std::vector<std::string> algorithms = {};  ///< of backend native, beside them: GroupOptions::algorithm
  std::int64_t min_bytes = 4;
  std::int64_t max_bytes = std::int64_t{256} << 20;
  std::int64_t factor = 4;  ///< from one size to the next
  std::int64_t rounds = 9;  ///< in each of which all contenders have their turn
  DType dtype = DType::f32;
  comm::ReduceOp op = comm::ReduceOp::sum;
  /// Measure what messages cost first, predict algorithms of messages by it, and let "by-cost" choose by it.
  bool predicts = false;
  bool roofline = false;  ///< time all_reduce without waiting, too (roofline.h)
  /// Instead of backends: the algorithms on this network; by a virtual clock (simulated.h), or between ranks whose
  /// messages are held up.
  std::optional<comm::NetworkModel> network = {};
  bool in_real_time = true;

  bool has_virtual_clock() const { return network && !in_real_time; }
};

/// Seconds of one collective: of the slowest rank, over the rounds.
struct BenchTime {
  double median = 0.0;
  double least = 0.0;
  double of_roofline = 0.0;  ///< the roofline's median divided by this one; 0 without a roofline
};

/// One contender at one size. `shared`: of tensors that all ranks see (ProcessGroup::shared_zeros()).
struct BenchRow {
  const BenchCollective* collective = nullptr;
  std::int64_t bytes = 0;
  std::string backend = {};  ///< or "native, ring", or kRoofline
  bool shared = false;
  std::optional<BenchTime> out_of_place = {}, in_place = {};  ///< where there is such a form
  /// Seconds by what messages cost, of algorithms of messages; 0: not predicted.
  double predicted = 0.0;
  std::string chosen = {};  ///< the algorithm that "by-cost" chose
  std::int64_t wrong = 0;   ///< elements, on all ranks, that are not what they must be to the bit

  /// In place where there is that form.
  const BenchTime& usual_time() const { return in_place ? *in_place : out_of_place.value(); }
  /// Bytes per second of the algorithm: bytes / seconds.
  double algorithm_bandwidth(const BenchTime& time) const { return static_cast<double>(bytes) / time.median; }
  /// The same times a factor by which it does not depend on the number of ranks where a link's speed is the limit.
  double bus_bandwidth(const BenchTime& time, int ranks) const {
    return algorithm_bandwidth(time) * collective->bus_factor(ranks);
  }
};

inline constexpr std::string_view kRoofline = "roofline";
/// What rows of algorithms are called: "native, ring".
inline constexpr std::string_view kAlgorithmOf = "native, ";

}  // namespace tandem::allreduce_bench
