// Data-parallel training: replicas start equal and their gradients are averaged while backward is still running.
//
// S. Li et al.: "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020.
#pragma once

#include "tandem/comm/ddp/exchange_totals.h"
#include "tandem/comm/ddp/gradient_bucket.h"
#include "tandem/comm/process_group.h"
#include "tandem/core/named_tensors.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::comm {

class GradientExchange;

/// How gradients are exchanged.
struct DistributedOptions {
  /// Gradients travel in buckets that are full at this many bytes. The first, of the last layers, may be smaller so
  /// that communication starts early; by default it takes 1 MiB, but no more than the others.
  std::optional<std::int64_t> first_bucket_bytes = {};
  /// By default default_bucket_bytes() of all gradients, by what an all-reduce of the group costs.
  std::optional<std::int64_t> bucket_bytes = {};
  HalfExchange half = HalfExchange::as_half;  ///< what gradients of half parameters travel as
};

/// Keeps the replicas of a model in step. In a training step, on every rank alike, backward() starts the exchange of
/// gradients and finish() completes it, also on a rank without samples, after set_gradient_weight(0) and no backward.
/// Where batches are uneven, set_gradient_weight(local_count / global_count * group.size()) comes first.
/// Gradients are views of the buckets (tagged comm): backward() writes them there, from the first step on, the exchange
/// changes them in place, and optimizers read them there, so that none is copied. Those of half parameters are f32
/// where they are exchanged so. From backward() to finish() a gradient is not final; afterwards it is the same on all
/// ranks, until zero_grad and the next backward() write over it: clone() what is to stay. The memory lives as long as a
/// view of it, also after this object. Batch norm's running statistics follow each rank's own samples during an epoch
/// (PyTorch sends rank 0's before each forward pass); call sync_buffers() before evaluating or saving, and replicas are
/// bit-identical again. Hooks of your own (autograd::on_gradient_ready) see each rank's own gradient, before it is
/// exchanged, whenever they are added. The first step's gradients tell in which order backward delivers them; where
/// that is not the reverse of the parameters' order, as was assumed, finish() cuts them into other buckets, once; until
/// the gradients that are there are dropped or written anew, that takes the memory of both. With one rank nothing is
/// hooked or copied. Constructor, finish, set_gradient_order, sync_buffers and check_replicas are collective. Errors
/// that all ranks see are AgreedErrors. Example:
///     #include "tandem/autograd/functions.h"
///     #include "tandem/autograd/variable.h"
///     #include "tandem/comm/launch/mpi_environment.h"
///     MpiEnvironment environment;
///     const auto group = make_process_group("auto", environment);
///     const Tensor w = autograd::set_requires_grad(Tensor::full({4}, 1.0 + group->rank()));
///     DistributedDataParallel ddp(*group, {{"w", w}}, {});     // w is 1 everywhere
///     autograd::backward(autograd::sum(autograd::mul(w, w)));  // of this rank's samples
///     ddp.finish();
///     const std::vector<float> mean_slope = autograd::grad(w).to_vector<float>();  // {2, 2, 2, 2}
class DistributedDataParallel {
 public:
  /// Checks that names, shapes, strides and dtypes agree on all ranks (naming the first tensor that differs), then
  /// gives every rank the parameters and buffers of rank 0. Parameters that want no gradient are only broadcast; those
  /// that are frozen later, on all ranks alike, have none from then on, and no bucket waits for theirs. A parameter
  /// listed under two names counts once. `group` must outlive this object. Of two objects with a parameter in
  /// common, the later one serves it: backward() throws Error for the other, but in its no_sync(). Throws Error for
  /// undefined tensors, for parameters on several devices and for buckets of less than 0 bytes.
  DistributedDataParallel(ProcessGroup& group, NamedTensors parameters, NamedTensors buffers,
                          DistributedOptions options = {});
  ~DistributedDataParallel();
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

  /// This rank's gradients count `weight` times in the average of the current step: the result is
  /// sum over ranks of weight * gradient, divided by the number of ranks. Set before backward; 1 again after finish().
  /// Throws Error for a weight below 0 or from 1e300 on, and after the step's first gradient.
  void set_gradient_weight(double weight);

  /// Completes the step: starts the buckets that backward left open (a parameter without a gradient on this rank
  /// counts as zero), waits, and sets the averaged gradients. A parameter that got no gradient on any rank has none.
  /// Where the exchange is a GPU's work (backend nccl) and all parameters that want a gradient have one, the host does
  /// not wait: what is enqueued on the current stream from now on sees the averages, and an exchange that fails is
  /// thrown by a later finish(), which waits for the one three steps before, or by exchange_under_way(). A parameter
  /// that wants no gradient any more, but still has one, has it on all ranks alike.
  void finish();

  /// The exchange of the last finish() where that did not wait for it, else null. Its wait() comes before any other
  /// wait for what follows on the GPU, which would last for ever where a rank is gone.
  std::shared_ptr<Work> exchange_under_way() const;

  /// Backward passes within the scope only add to the local gradients, for all but the last micro-batch of a step.
  /// After that one, until finish(), they throw Error.
  class NoSync {
   public:
    /// Turns the exchange off until its end.
    explicit NoSync(bool& synchronising) : synchronising_(synchronising), previous_(synchronising) {
      synchronising_ = false;
    }
    ~NoSync() { synchronising_ = previous_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    bool& synchronising_;
    bool previous_;
  };
  /// Such a scope, for this replica.
  [[nodiscard]] NoSync no_sync();

  /// Gives every rank the buffers of rank 0.
  void sync_buffers();

  // Steps in a WorkGraph: backward() and finish() can be recorded, on all ranks alike, in the same step. Two steps go
  // before, of which the first tells the order of the gradients.

  /// Why a step cannot be recorded; "": it can, or there is nothing to exchange.
  std::string recording_obstacle() const;
  /// Behind each launch of a recorded step, in place of finish(), on its stream.
  void finish_launched();
  /// Behind a WorkGraph whose constructor has thrown: forgets the step that it recorded.
  void abandon_step();

  /// Compares a hash of every parameter and buffer over all ranks; throws an AgreedError that names the ranks and the
  /// first tensor that differ.
  void check_replicas();

  /// What the exchange took since the last call, or since construction; on one rank `window_seconds` alone.
  ExchangeTotals take_totals();

  /// The order in which backward delivers gradients, rank 0's, as indices of the parameters that want one, each listed
  /// once, in the order in which they were given; empty before the first step, and on one rank. It belongs to the state
  /// of a run: with messages between three ranks or more, sums are rounded otherwise where buckets are cut otherwise.
  const std::vector<std::int64_t>& gradient_order() const;
  /// Takes the order as given instead of that of the next step; an empty one is that of the start: the next step tells
  /// it anew. Gradients that are there stay where they are. Collective, between steps. Throws Error as
  /// check_gradient_order() does, and after the step's first gradient; AgreedError where ranks give different ones.
  /// Does nothing else on one rank.
  void set_gradient_order(const std::vector<std::int64_t>& order);
  /// Throws Error unless the order is empty or has each index once.
  void check_gradient_order(const std::vector<std::int64_t>& order) const;

  /// How many parameters want a gradient.
  std::size_t gradient_count() const;
  /// How many buckets, and so all-reduces, a step has; 0 on one rank.
  std::size_t bucket_count() const;
  /// The bytes at which a bucket is full; the first may be full at fewer.
  std::int64_t bucket_bytes() const;
  /// Bytes of gradients in each bucket, in the order of the exchange; on one rank, of those that several would have.
  std::vector<std::int64_t> bucket_sizes() const;

 private:
  void watch_first_bucket();

  ProcessGroup& group_;
  NamedTensors parameters_;
  NamedTensors buffers_;
  std::shared_ptr<GradientExchange> exchange_;  // hooks hold it weakly: they outlive this object
};

}  // namespace tandem::comm
