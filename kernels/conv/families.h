// The families of kernels that convolve: what each can, when it pays, and its passes. Who runs is chosen from here, and
// tests loop over it. A new family is its folder and a row in families_cuda.cpp or families_cpu.cpp.
#pragma once

#include "tandem/kernels/conv/operands.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tandem::kernels::cuda {

/// Passes that a family does not have are null: backward_input is then that of the next slower family that has one, and
/// what the last seven would do in one pass is done in two.
struct ConvFamily {
  std::string_view name;
  ConvObstacle* obstacle;
  ForwardPass* forward;
  BackwardInputPass* backward_input;
  BackwardWeightPass* backward_weight;
  ForwardPoolPass* forward_pool = nullptr;
  ForwardMomentsPass* forward_moments = nullptr;
  MomentParts* moment_parts = nullptr;
  ForwardPoolMomentsPass* forward_pool_moments = nullptr;
  MomentParts* pool_moment_parts = nullptr;
  BackwardInputBelowPass* backward_input_below = nullptr;
  BackwardWeightAndBiasPass* backward_weight_and_bias = nullptr;

  /// The implementation that stands for this family: asked for, it runs wherever there is no obstacle; unasked, where
  /// it `pays`. None: it runs for `automatic` and `fused`, and as the next best where the one that was asked for does
  /// not.
  std::optional<ConvImpl> stands_for = {};
  /// Set: this family takes single passes of what the next slower one runs, where it says so.
  bool (*pays)(PassKind pass, const ConvGeometry& g) = nullptr;
  /// Set: where it says so, `automatic` takes this family though there is a library.
  bool (*beats_library)(PassKind pass, const ConvGeometry& g) = nullptr;
  bool takes_mask = false;            // a gradient may come with its mask; others copy it first
  bool has_tensor_cores = false;      // halves that go to another one are worth a notice
  bool is_slower_candidate = false;   // the tuner measures it beside the faster one that the rule takes
  bool for_first_layers = false;      // rather than a library, where storing an output takes longer than summing it up
  bool fuses_beside_library = false;  // fused with what follows, it is always faster than a library and a second pass
  bool has_library_rate = false;      // it convolves about as fast as a library does, but fuses less
};

/// All families, slowest first. The first one takes everything.
std::span<const ConvFamily> conv_families();

/// The one of that name; throws Error where there is none.
const ConvFamily& conv_family(std::string_view name);

}  // namespace tandem::kernels::cuda

namespace tandem::kernels::cpu {

/// Our code and a library's for the CPU, on raw pointers. T is the type of the images: float, Half or BFloat16; weights
/// are floats. `backward_weight` also sums the bias gradient, which may be null.
template <typename T>
struct ConvFamily {
  std::string_view name;
  /// The implementation that stands for this family: asked for, it runs wherever it is supported. None: it runs by rule
  /// and by measurement.
  std::optional<ConvImpl> impl;
  bool is_ours;  // what `fused` chooses from
  bool (*supports)(const ConvGeometry& g);
  bool (*pays)(const ConvGeometry& g);                             // more than the slower ones
  std::int64_t (*products)(const ConvGeometry& g, PassKind pass);  // of two numbers in a pass
  void (*forward)(const ConvGeometry& g, const T* x, const float* w, const ConvEpilogue& epilogue, T* y);
  void (*backward_input)(const ConvGeometry& g, MaskedGradient<T> grad_y, const float* w, T* grad_x);
  void (*backward_weight)(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y, float* grad_w, float* grad_bias);
};

/// All that this build has for T, slowest first. The first one takes everything.
template <typename T>
std::span<const ConvFamily<T>> conv_families();

}  // namespace tandem::kernels::cpu
