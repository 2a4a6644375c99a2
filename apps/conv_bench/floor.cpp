// Operations, bytes and ceilings.
#include "apps/conv_bench/floor.h"

#include "apps/measure/bandwidth.h"
#include "apps/measure/peak.h"
#include "core/error.h"
#include "core/parallel.h"

#include <algorithm>
#include <vector>

namespace tandem::conv_bench {

namespace {

constexpr std::array<std::string_view, 5> kPassNames{"fwd", "dgrad", "wgrad", "bwd", "both"};

std::vector<Work> parts_of(const Workload& workload, Pass pass) {
  const kernels::ConvGeometry g = workload.geometry();
  const auto element = static_cast<double>(size_of(workload.dtype()));
  const auto x = element * static_cast<double>(g.input_numel()), y = element * static_cast<double>(g.output_numel());
  const auto w = element * static_cast<double>(g.weight_numel()), bias = element * static_cast<double>(g.k);
  const double mask = static_cast<double>(g.output_numel()) / 8.0;
  const double flops = 2.0 * static_cast<double>(g.output_numel()) * static_cast<double>(g.c * g.r * g.s);
  std::vector<Work> parts;
  if (has_forward(pass)) parts.push_back({flops, x + w + bias + y + mask});
  if (has_input_gradient(pass) && !workload.layer.is_first) parts.push_back({flops, y + mask + w + x});
  if (has_weight_gradient(pass)) parts.push_back({flops, x + y + mask + w + bias});
  return parts;
}

}  // namespace

std::string_view name_of(Pass pass) { return kPassNames[static_cast<std::size_t>(pass)]; }

bool has_forward(Pass pass) { return pass == Pass::forward || pass == Pass::both; }
bool has_input_gradient(Pass pass) { return pass != Pass::forward && pass != Pass::backward_weight; }
bool has_weight_gradient(Pass pass) { return pass != Pass::forward && pass != Pass::backward_input; }

Pass parse_pass(std::string_view text) {
  for (std::size_t i = 0; i < kPassNames.size(); ++i)
    if (kPassNames[i] == text) return static_cast<Pass>(i);
  fail("--passes '{}': choose from fwd, dgrad, wgrad, bwd and both", text);
}

Work work_of(const Workload& workload, Pass pass) {
  Work sum;
  for (const Work& part : parts_of(workload, pass)) {
    sum.flops += part.flops;
    sum.bytes += part.bytes;
  }
  return sum;
}

std::optional<double> floor_of(const Workload& workload, Pass pass, const Ceilings& ceilings) {
  const double flops = ceilings.flops(workload.dtype());
  if (flops <= 0.0 || ceilings.bandwidth <= 0.0) return {};
  double seconds = 0.0;
  for (const Work& part : parts_of(workload, pass))
    seconds += std::max(part.flops / flops, part.bytes / ceilings.bandwidth);
  return seconds;
}

Ceilings known_ceilings(std::string_view gpu) {
  // Tensor cores with f32 sums; f32 without them; what large copies reach.
  if (gpu.find("H200") != std::string_view::npos) return {60e12, 790e12, 4.3e12, "known of this GPU"};
  return {};
}

Ceilings measured_ceilings() {
  const int threads = num_threads();
  const double flops = apps::measure_peak_flops(threads);
  return {flops, flops, apps::measure_bandwidth(threads), "measured: multiply-adds in registers, copies in memory"};
}

}  // namespace tandem::conv_bench
