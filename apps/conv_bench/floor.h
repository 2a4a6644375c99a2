// The least that a pass must do, and the least time that a machine takes for it.
#pragma once

#include "apps/conv_bench/workload.h"
#include "tandem/kernels/conv/conv.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::conv_bench {

/// The two gradients on their own, one after the other as `backward`, and that after the forward pass.
enum class Pass : std::uint8_t { forward, backward_input, backward_weight, backward, both };

std::string_view name_of(Pass pass);
bool has_forward(Pass pass);
bool has_input_gradient(Pass pass);
bool has_weight_gradient(Pass pass);
/// "fwd", "dgrad", "wgrad", "bwd" or "both"; anything else throws.
Pass parse_pass(std::string_view text);

/// Operations by the definition of convolution, two per multiply-add; those that are really done, which are fewer by
/// Winograd's algorithm (its transforms are not counted); and bytes that must be read or written once.
struct Work {
  double flops = 0.0, done_flops = 0.0, bytes = 0.0;
};

/// A machine's ceilings: f32 and half operations per second, and bytes of memory per second; 0: unknown.
struct Ceilings {
  double flops_f32 = 0.0, flops_half = 0.0, bandwidth = 0.0;
  std::string source;  // where they come from

  double flops(DType dtype) const { return dtype == DType::f16 || dtype == DType::bf16 ? flops_half : flops_f32; }
};

/// The sum over the parts of a pass: the forward pass; the input gradient, unless nobody wants it; the weight gradient
/// with the bias gradient. Forward reads x, w and bias and writes y and a bit per element of y; a gradient reads the
/// mask's bits, grad_y, and w or x. Operations are done as `impl` does them; without it, as the definition says.
std::vector<Work> parts_of(const Workload& workload, Pass pass, std::optional<kernels::ConvImpl> impl = {});
Work sum_of(const std::vector<Work>& parts);

/// Seconds: for each part the larger of the operations done and its bytes at the machine's ceilings. Nothing where a
/// ceiling is unknown. Data that the caches still hold may be faster than this.
std::optional<double> floor_of(const std::vector<Work>& parts, DType dtype, const Ceilings& ceilings);

/// A ceiling that was beaten is none: raises the one for `dtype` to `flops` operations per second where that is more,
/// and has the source say so, with the name of the one that reached it. True if it was raised.
bool raise_ceiling(Ceilings& ceilings, DType dtype, double flops, std::string_view reached_by);

/// Known ceilings of a GPU by its name; zeros for one that is not known.
Ceilings known_ceilings(std::string_view gpu);

/// Measured on all threads of this process.
Ceilings measured_ceilings();

}  // namespace tandem::conv_bench
