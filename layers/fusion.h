// Pairs of layers that one kernel computes together: a table that Sequential and residual blocks look into.
#pragma once

#include "tandem/layers/module.h"

#include <span>

namespace tandem::layers {

/// A row: which two layers, one after the other, can be computed at once, and how.
struct Fusion {
  std::string_view name;
  /// Whether it is for these two. `input`: of the first, or any other on that device.
  bool (*fits)(const Module& first, const Module& second, const Tensor& input);
  /// second(first(input)). Errors name the first layer, or that which they come from.
  Tensor (*run)(Module& first, Module& second, const Tensor& input);
};

/// Convolution and batch norm in training; convolution with ReLU and 2x2 maxima (both on a GPU); and two sequences
/// whose last and first layers are such a pair.
std::span<const Fusion> fusions();

/// The row that fits, or null: also where one of the two is observed, who sees what each of them returns.
const Fusion* find_fusion(const Module& first, const Module& second, const Tensor& input);

/// second(first(input)), at once where there is a row for it.
Tensor call_both(Module& first, Module& second, const Tensor& input);

}  // namespace tandem::layers
