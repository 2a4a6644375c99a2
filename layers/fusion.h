// Neighbouring layers that one kernel computes together: a table that Sequential and the blocks of networks look into.
#pragma once

#include "tandem/layers/module.h"

#include <functional>
#include <initializer_list>
#include <span>

namespace tandem::layers {

/// Layers, each of which takes what the one before it returns.
using LayerRun = std::span<const std::reference_wrapper<Module>>;

/// A row: which layers, one after the other, can be computed at once, and how.
struct Fusion {
  std::string_view name;
  std::size_t size;  ///< how many layers it is for
  /// Whether it is for these. `input`: of the first, or any other on that device.
  bool (*fits)(LayerRun layers, const Tensor& input);
  /// What the last returns for the input of the first. Errors name the first layer, or that which they come from.
  Tensor (*run)(LayerRun layers, const Tensor& input);
};

/// Those of more layers first. Convolution, 2x2 maxima and batch norm in training; convolution and batch norm in
/// training; convolution, with or without ReLU, and 2x2 maxima (all on a GPU); and two sequences whose last and first
/// layers are such a pair.
std::span<const Fusion> fusions();

/// The first row that fits the layers at the beginning of `layers`, or null: also where one of them is observed, who
/// sees what each of them returns.
const Fusion* find_fusion(LayerRun layers, const Tensor& input);

/// What the last layer returns for the input of the first: at once where there are rows for neighbours. No layers
/// return the input.
Tensor call_all(LayerRun layers, const Tensor& input);
Tensor call_all(std::initializer_list<std::reference_wrapper<Module>> layers, const Tensor& input);

}  // namespace tandem::layers
