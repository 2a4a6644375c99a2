// Which channels of a network's ReLUs give nothing for any image.
#pragma once

#include "tandem/comm/process_group.h"
#include "tandem/core/tensor.h"
#include "tandem/layers/module.h"
#include "tandem/train/forward.h"
#include "tandem/train/records.h"

#include <map>
#include <string>
#include <vector>

namespace tandem::train {

/// Looks, while it lives, at what each ReLU of a model gives: modules of class ReLU, and layers with a fused one. A
/// channel (dimension 1 of an output [N, C, H, W], else the last one) that is 0 for every image and at every place is
/// dead: by these images no gradient reaches its weights. Of an output with fewer than two dimensions all is one
/// channel; a NaN is not 0. autograd::relu() in a module of another class is not seen, as behind the sum of a
/// BasicBlock. A module that a forward pass of the model calls several times counts as one ReLU for each call. Layers
/// that one kernel computes at once are computed apart meanwhile. Example:
///     #include "tandem/train/evaluation.h"
///     std::vector<DeadRelus> dead_in(layers::Module& model, data::Loader& loader, comm::ProcessGroup& group) {
///       DeadReluMeter meter(model);
///       evaluate(model, loader, group);
///       return meter.dead_relus(group);
///     }
class DeadReluMeter {
 public:
  /// Looks at `model`, which must live as long.
  explicit DeadReluMeter(layers::Module& model);
  ~DeadReluMeter();
  DeadReluMeter(const DeadReluMeter&) = delete;
  DeadReluMeter& operator=(const DeadReluMeter&) = delete;

  /// The same function, by which a pass begins: for models that are not called as model(input), but by a function of
  /// their own, so that each batch is a pass. To be called while this lives.
  ForwardFunction watched(ForwardFunction forward);

  /// Of the images that all ranks saw, in the order of the forward pass; empty on a rank that saw none. Collective.
  std::vector<DeadRelus> dead_relus(comm::ProcessGroup& group) const;

 private:
  struct Place {
    std::string name;
    Tensor sums;  ///< [C], of its outputs, none of which is negative: 0 where all are 0
  };

  void add(const std::string& module, const Tensor& output);

  std::vector<layers::RemovableHandle> hooks_;
  std::map<std::string, int> calls_;  // of each module, in the pass that goes on
  std::vector<Place> places_;
};

}  // namespace tandem::train
