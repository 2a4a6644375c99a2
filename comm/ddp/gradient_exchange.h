// A replica's gradients in buckets: when the exchange of each begins, and when all are there.
#pragma once

#include "tandem/comm/ddp/distributed_data_parallel.h"
#include "tandem/comm/ddp/steps_under_way.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tandem::comm {

/// What a DistributedDataParallel does between its hooks and finish(). Gradients are put into buckets as backward()
/// delivers them; a bucket that is full is averaged over the ranks while backward goes on; finish() ends the step, and
/// that of the first step learns in which order gradients come. Of one rank there are no buckets, and only times.
class GradientExchange {
 public:
  /// Of parameters that want a gradient, each once, all on one device, and their names. Chooses how large buckets are,
  /// and which parameters share one; there are none before make_buckets(). Collective. Throws Error for buckets of less
  /// than 0 bytes.
  GradientExchange(ProcessGroup& group, std::vector<Tensor> parameters, std::vector<std::string> names,
                   const DistributedOptions& options);

  /// Those of the plan, in place of those before. Collective.
  void make_buckets();

  /// Takes in a gradient that is final, lets it be the bucket's memory, and starts the exchange of what is full.
  /// Returns what the parameter's gradient is to be. Throws Error for a second one in a step.
  Tensor put(std::size_t parameter, const Tensor& gradient);
  /// Ends the step: see DistributedDataParallel. Collective.
  void finish();
  /// Behind a launch of what backward() and finish() have recorded.
  void finish_launched();
  /// Forgets a step that was recorded and has failed.
  void abandon_step();

  /// On one rank: of a gradient that would be in the first bucket.
  void count_in_first_bucket();
  /// On one rank: ends the step.
  void finish_alone();

  /// How often this rank's gradients of the step count; 1 again behind it.
  void set_weight(double weight) { weight_ = weight; }
  double take_weight() { return std::exchange(weight_, 1.0); }
  /// Whether a gradient of this step is in a bucket.
  bool has_started() const { return has_started_; }
  /// False while gradients are only added up on this rank.
  bool& synchronising() { return synchronising_; }

  const std::vector<Tensor>& parameters() const { return parameters_; }
  const BucketPlan& plan() const { return plan_; }
  std::size_t bucket_count() const { return buckets_.size(); }
  std::int64_t first_bucket_bytes() const { return first_bucket_bytes_; }
  std::int64_t bucket_bytes() const { return bucket_bytes_; }
  HalfExchange half() const { return half_; }
  /// In which gradients come, as far as that is known; else empty.
  const std::vector<std::int64_t>& order() const { return order_; }
  /// Takes it as known, and cuts buckets by it. An empty one is that of the start, until a step has told it.
  /// Collective.
  void take_order(std::vector<std::int64_t> known);

  /// What it took since the last call.
  ExchangeTotals take_totals() { return std::exchange(totals_, {}); }
  /// The works of the last step, as one; null where they were complete.
  std::shared_ptr<Work> under_way() const { return under_way_.last(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Place {
    std::size_t bucket, index;
  };

  void choose_bucket_bytes(const DistributedOptions& options);
  std::size_t first_bucket_gets() const;
  bool has_lost_a_place() const;
  void learn_order();
  bool is_full(GradientBucket& bucket) const;
  void launch_full();

  ProcessGroup& group_;
  std::vector<Tensor> parameters_;
  std::vector<std::string> names_;
  HalfExchange half_;
  std::int64_t bucket_bytes_ = 0, first_bucket_bytes_ = 0;  // of full ones
  BucketPlan plan_;
  std::vector<GradientBucket> buckets_;
  std::vector<Place> places_;          // of the parameters' gradients
  std::vector<std::int64_t> arrived_;  // of this step, while the order is unknown
  std::vector<std::int64_t> order_;    // that of the plan, once it is known
  std::size_t launched_ = 0;           // buckets [0, launched_) are under way
  double weight_ = 1.0;
  bool synchronising_ = true;
  bool has_started_ = false;
  std::size_t first_bucket_has_ = 0;  // on one rank: gradients of this step that would be in it
  Clock::time_point first_launch_;
  ExchangeTotals totals_;
  StepsUnderWay under_way_;
};

}  // namespace tandem::comm
