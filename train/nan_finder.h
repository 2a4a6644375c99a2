// Where NaN or Inf comes from: the first tensor of a training run that is not finite although its inputs were.
#pragma once

#include "tandem/layers/hooks.h"
#include "tandem/train/trainer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::train {

/// What a tensor is to the layer that is named, in the order in which a step makes them.
enum class NanPlace : std::uint8_t {
  weight,              ///< a parameter or buffer, before the step began
  model_input,         ///< what the loader gave: images
  layer_input,         ///< made by what the model does between its layers
  output,              ///< made by the layer's forward
  output_gradient,     ///< made by what uses the output: the loss, or what the model does between its layers
  input_gradient,      ///< made by the layer's backward
  parameter_gradient,  ///< the same
  exchanged_gradient,  ///< a parameter's, whose parts were finite on each rank: their sum is not
  update,              ///< a parameter, whose gradient was finite, or a buffer behind the step
};

/// "weight", "model input", "output", ...
std::string_view name_of(NanPlace place);

/// The first tensor that is not finite.
struct NanFinding {
  NanPlace place = NanPlace::output;  ///< which kind of tensor
  std::int64_t step = 0;       ///< that was being done, from 1 over all epochs; of a weight the one that was to be done
  bool in_evaluation = false;  ///< behind that step
  int rank = 0;                ///< that saw it first
  std::string layer;           ///< dotted name of the module, "" for the model itself
  std::string description;     ///< Module::describe() of that
  std::string tensor;          ///< dotted name, of parameters and buffers
  std::string dtype;           ///< "f32"
  std::string shape;           ///< "[64, 3, 3, 3]"
  std::int64_t elements = 0, nans = 0, infinities = 0;  ///< of the tensor, and those that are NaN or infinite
  double largest_input = 0.0;  ///< magnitude, of an output's or an input gradient's cause; 0: not known
  std::vector<std::int64_t>
      examples;                  ///< of a model input: at most eight that are not finite, by number in the data set
  std::vector<int> other_ranks;  ///< where the same place of the same layer is not finite, too
};

/// "step 41, rank 1: the output of features.3 (ReLU), f32[16, 8, 4, 4], has 3 NaN and 0 Inf of 2,048 elements; its
/// input was finite". One sentence, or two.
std::string to_string(const NanFinding& finding);

/// Watches each tensor of a training: inputs and outputs of all modules, their gradients in the order of backward,
/// parameters' gradients before and behind their exchange, and weights behind each step. Everything is read, so that a
/// GPU waits and layers are computed apart which one kernel would do: for a run that is made to find this. On a CPU the
/// steps have the bits that they have without it.
/// An infinity that is meant is found as well, such as that of a masked score; in a buffer only NaN counts.
/// A gradient that a loss scale makes overflow is no finding as long as its step is skipped, as it is meant to be.
/// Example:
///     std::optional<NanFinding> find(Trainer& trainer) {
///       NanFinder finder(trainer);
///       const EpochRecord last = trainer.run(finder.with({}));
///       return finder.first(last);
///     }
class NanFinder {
 public:
  /// The trainer, its model and its parts must outlive this object. Looks at the weights.
  explicit NanFinder(Trainer& trainer);
  /// Takes the hooks of modules away. What was hung on parameters stays there and does nothing.
  ~NanFinder();
  NanFinder(const NanFinder&) = delete;
  NanFinder& operator=(const NanFinder&) = delete;

  /// `observer`, and what ends training on all ranks behind the step in which something was found. Must not outlive
  /// this object. Where a weight is not finite to begin with, training ends behind its first step.
  TrainObserver with(const TrainObserver& observer);

  /// What was found first, the same on all ranks; nothing if all was finite. `last`: what training returned. Where that
  /// ended because of too many skipped steps, it is what the last of them was skipped for. Collective.
  std::optional<NanFinding> first(const EpochRecord& last);

 private:
  struct State;
  std::shared_ptr<State> state_;  // hooks of parameters hold it weakly
  std::vector<layers::RemovableHandle> handles_;
};

}  // namespace tandem::train
