// A bucket of gradients: flat memory that is reduced at once.
#pragma once

#include "tandem/comm/process_group.h"
#include "tandem/core/communication_event.h"

#include <memory>
#include <span>
#include <vector>

namespace tandem::comm {

/// What gradients of half parameters are exchanged in. Either way the ranks' gradients are added up in f32; `as_half`
/// rounds the result once more, and where the backend moves halves it moves half as much.
enum class HalfExchange : std::uint8_t { as_half, in_f32 };

/// The dtype in which the gradients of such parameters are exchanged.
DType exchange_dtype(DType parameter_dtype, HalfExchange half);

/// Which parameters share a bucket, by index, in the order of their places in it. All are exchanged in one dtype.
using BucketPlan = std::vector<std::vector<std::size_t>>;

/// What a bucket should hold where gradients of `total_bytes` are exchanged. Small buckets let more of the exchange go
/// on beside backward, and leave less of it behind that; each costs a latency. Both together are least at sqrt(total
/// bytes * latency_bytes), where `latency_bytes` is what could be exchanged in the latency of one all-reduce: latency *
/// bandwidth. Between 64 KiB and 25 MiB.
std::int64_t default_bucket_bytes(std::int64_t total_bytes, double latency_bytes);

/// Of all-reduces between devices of this kind: what is predicted of the group's messages (rank 0's prediction); where
/// it sends none itself, 64 KiB on CPUs, which share memory (10 us, 6.5 GB/s), and 2 MiB on GPUs (20 us, 100 GB/s).
/// Collective.
double latency_bytes(ProcessGroup& group, Device device);

/// Cuts parameters into buckets in `order`, that in which backward delivers gradients: each index once. A bucket is
/// closed once it holds its limit: `first_bytes` for the first bucket of a dtype, `bytes` for all others; the parameter
/// that crosses the limit stays in it. Buckets follow each other by when their last parameter is due.
BucketPlan plan_buckets(std::span<const Tensor> parameters, std::span<const std::size_t> order,
                        std::int64_t first_bytes, std::int64_t bytes, HalfExchange half = HalfExchange::as_half);
/// In reverse order, as backward delivers gradients about so.
BucketPlan plan_buckets(std::span<const Tensor> parameters, std::int64_t first_bytes, std::int64_t bytes,
                        HalfExchange half = HalfExchange::as_half);

/// The gradients of some parameters, one after another in the parameters' own memory order, each aligned to kAlignment
/// as fresh memory is, followed by one mark per parameter that tells whether any rank had a gradient for it. While it
/// lives it is the parameters' gradient place (autograd::set_gradient_place): backward() writes gradients into it.
class GradientBucket {
 public:
  /// With a group, on the CPU, its memory is what the group reduces without copies: collective then.
  explicit GradientBucket(std::vector<Tensor> parameters, HalfExchange half = HalfExchange::as_half,
                          ProcessGroup* group = nullptr);
  ~GradientBucket();
  GradientBucket(GradientBucket&&) = default;
  GradientBucket& operator=(GradientBucket&&) = delete;

  std::size_t size() const { return parameters_.size(); }
  /// What launch() gives to the group, marks and gaps included.
  std::int64_t bytes() const { return flat_.numel() * size_of(flat_.dtype()); }
  const Tensor& parameter(std::size_t index) const { return parameters_[index]; }

  /// Takes in the gradient of the `index`-th parameter, times `weight`; an undefined one counts as zero. Copies it only
  /// where backward() has not put it here. Returns the bucket's memory for it: what the parameter's gradient is to be.
  Tensor put(std::size_t index, const Tensor& gradient, double weight);
  bool has(std::size_t index) const { return taken_[index]; }
  /// True if the `index`-th parameter was given another gradient place.
  bool is_replaced(std::size_t index) const;
  bool is_full() const { return taken_count_ == parameters_.size(); }

  /// Starts averaging over all ranks; the bucket must be full. `number`: its name in a timeline.
  void launch(ProcessGroup& group, std::size_t number = 0);
  void poll() {
    if (!is_averaged_ && work_ && work_->poll()) end_exchange();
  }
  /// True if a poll since launch() found that the average is there.
  bool is_averaged() const { return is_averaged_; }

  /// Makes the average the parameters' gradients and empties the bucket for the next step. Returns null once the
  /// average is there, for which it waits; or, where what is enqueued on the current stream from now on comes behind
  /// it, the work that it is of (Work::join()). Within a WorkGraph's recording throws Error where a parameter that
  /// wants a gradient has none on this rank, as the host then asks whether another one has.
  std::unique_ptr<Work> finish();
  /// Empties it without an average: of a recording that has failed.
  void abandon();

 private:
  void end_exchange();
  Tensor mark(std::size_t index) const;
  Tensor reduced_marks() const;
  void write_marks();
  bool knows_all_marks() const;
  void empty();

  std::vector<Tensor> parameters_;
  std::vector<Tensor> views_;  // of flat_, shaped as the parameters
  Tensor flat_;
  Tensor marks_;  // the marks in host memory: part of flat_, or a copy where that is on a device
  // Whether this rank has a gradient, by parameter; where flat_ is on a device, what marks_there_ says as well.
  std::vector<bool> has_gradient_, written_there_;
  Tensor marks_there_;  // on that device: what averaging writes over
  std::vector<bool> taken_;
  std::size_t taken_count_ = 0;
  std::unique_ptr<Work> work_;
  bool is_averaged_ = false;
  std::unique_ptr<CommunicationEvent> exchange_;  // under way, where a timeline is recorded
};

}  // namespace tandem::comm
