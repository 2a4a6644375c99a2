// Who runs the passes of a convolution: decided once per call of a layer, and kept for its gradients.
#pragma once

#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/conv/geometry.h"

#include <cstdint>
#include <string_view>

namespace tandem::kernels {

class ConvLibrary;
namespace cuda {
struct ConvFamily;
}

/// In place of a family's name: the reference, which takes every dtype and tensors without elements.
inline constexpr std::string_view kPlainLoops = "reference";

/// Who runs one pass: a family of our kernels on a GPU, or a library there, or code for the CPU. None of them: nobody
/// was chosen yet.
struct ConvRunner {
  const cuda::ConvFamily* family = nullptr;
  ConvLibrary* library = nullptr;
  int library_plan = 0;          // which of the library's ways
  std::string_view on_cpu = "";  // the name of a family for the CPU, or kPlainLoops
  std::string_view reason = "";  // why no faster family runs; "" for the fastest

  bool is_chosen() const { return family != nullptr || library != nullptr || !on_cpu.empty(); }
  friend bool operator==(const ConvRunner& a, const ConvRunner& b) {
    return a.family == b.family && a.library == b.library && a.library_plan == b.library_plan && a.on_cpu == b.on_cpu;
  }
};

/// What a plan shall say beside the geometry.
struct ConvRequest {
  /// forward, or that and what follows it, forward_pool, forward_moments or forward_pool_moments, if kernels do it all
  /// in one pass.
  PassKind forward = PassKind::forward;
  bool grad_x = false, grad_w = false;  // who runs these gradients
  std::string_view op = "conv2d";       // named in errors
};

/// The runners are those of tensors that begin at multiples of 16 bytes; for others, and for passes whose runner is not
/// chosen, the choice is made when the pass runs. So it is, too, where the tuner is active (tuning/tuner.h): the runner
/// is then what it falls back to.
struct ConvPlan {
  /// Where conv2d_pool_forward() runs and our own kernels compute the gradients, those too leave out an odd last row
  /// and column of y: it is whole_windows() of the convolution then, and so is the gradient of y.
  ConvGeometry geometry;
  ConvImpl impl;  // what was asked for
  DType dtype;
  Device device;
  ConvRunner forward, backward_input, backward_weight;
  bool fuses_pool = false;        // 2x2 maxima are part of the pass: requested, and there are such kernels
  std::int64_t moment_parts = 0;  // of the moments that it leaves; 0: there are no such kernels, or faster ones

  /// What was requested and is one pass.
  bool runs_pool_with_relu() const { return fuses_pool && moment_parts == 0; }    // conv_bias_relu_pool_forward()
  bool runs_with_moments() const { return !fuses_pool && moment_parts > 0; }      // conv2d_forward_with_moments()
  bool runs_pool_with_moments() const { return fuses_pool && moment_parts > 0; }  // conv2d_pool_forward()
};

/// The plan for x and w as conv.h has them, checked as the passes check them.
ConvPlan plan_conv(const Tensor& x, const Tensor& w, const Conv2dOptions& options, const ConvRequest& request = {});

/// Whether the planned kernels of grad_x do the work of a LayerBelow as they write it; others go over it once more,
/// which is no faster than to leave that work to the layer below.
bool conv_fuses_layer_below(const ConvPlan& plan, const Tensor& x, const Tensor& w);

/// How often this process has chosen who runs: once for each plan that asks for it, and for each pass without one.
std::int64_t conv_choices();

/// Counts one such choice.
void count_conv_choice();

}  // namespace tandem::kernels
