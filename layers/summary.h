// A network as a table: layers, output shapes, parameters, work and memory.
#pragma once

#include "tandem/layers/module.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tandem::layers {

/// A layer that computes something itself: one without children, or with parameters or products beside theirs.
struct LayerSummary {
  std::string name, what;       ///< dotted name, and describe()
  int calls = 0;                ///< in one forward pass
  Shape output;                 ///< of the last call; empty if there was none
  std::int64_t parameters = 0;  ///< its own, without its children's
  double flops = 0;             ///< of products and convolutions (WorkCounter) of all calls, without its children's
};

/// What summarize() finds out. Bytes are of elements.
struct ModelSummary {
  std::vector<LayerSummary> layers;  ///< in the order of named_modules()
  /// How many numbers are learned, how many of these are frozen, and in how many tensors.
  std::int64_t parameters = 0, frozen_parameters = 0, parameter_tensors = 0;
  std::int64_t parameter_bytes = 0, buffer_bytes = 0;  ///< of parameters, and of buffers such as running statistics
  double flops = 0;                   ///< of a forward pass, as above; backward takes about twice as many
  std::int64_t activation_bytes = 0;  ///< kept from forward to backward, with the output, without the input
};

/// Runs two forward passes on zeros of shape `input`, which has a batch dimension and the dtype of the parameters: one
/// in evaluation mode, and one in training mode for the memory (but for dropout, which would draw numbers; in
/// evaluation mode where the network cannot be trained on such a batch). Modes, statistics, gradients and observers are
/// left as they were, and observers see nothing of it; hooks run. Example:
///     #include "tandem/layers/models/models.h"
///     const auto network = make_model({.name = "vgg_lite"});
///     const ModelSummary facts = summarize(*network, {1, 3, 32, 32});
///     const std::int64_t parameters = facts.parameters;  // 2625962
ModelSummary summarize(Module& module, const Shape& input);

/// The same on a tensor: for networks that take integers, as an Embedding does.
ModelSummary summarize(Module& module, const Tensor& input);

/// The same by `forward`, which calls the network in its own way, on several inputs, say. Called twice. A part that is
/// not called as a module, layer(x), has no output in the table, and its FLOPs are of the module that calls it.
/// Example:
///     #include "tandem/autograd/functions.h"
///     #include "tandem/layers/linear.h"
///     #include "tandem/layers/module_list.h"
///     Initializer initializer(1);
///     ModuleList towers;
///     for (int i = 0; i < 2; ++i) towers.add<Linear>({.in = 4, .out = 3}, initializer);
///     const Tensor x = Tensor::zeros({8, 4}), y = Tensor::zeros({8, 4});
///     const ModelSummary facts = summarize(towers, [&] { return towers[0](x) + towers[1](y); });
///     const double flops = facts.flops;  // 384
ModelSummary summarize(Module& module, const std::function<Tensor()>& forward);

/// One line per layer with its dotted name, what it is, the shape that it returns, its parameters and its FLOPs; then
/// the totals. A layer used more than once says so.
std::string to_string(const ModelSummary& summary);

/// to_string(summarize(module, input)), or of a function as above.
/// Example:
///     #include "tandem/layers/models/models.h"
///     const auto network = make_model({.name = "vgg_lite"});
///     const std::string table = summary(*network, {1, 3, 32, 32});  // to be printed
std::string summary(Module& module, const Shape& input);
std::string summary(Module& module, const Tensor& input);
std::string summary(Module& module, const std::function<Tensor()>& forward);

}  // namespace tandem::layers
