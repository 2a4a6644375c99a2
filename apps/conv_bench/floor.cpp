// Operations, bytes and ceilings.
#include "apps/conv_bench/floor.h"

#include "apps/measure/bandwidth.h"
#include "apps/measure/peak.h"
#include "tandem/core/error.h"
#include "tandem/core/parallel.h"
#include "tandem/kernels/conv/implementations.h"
#include "tandem/kernels/conv/tuning/tuner.h"

#include <algorithm>
#include <vector>

namespace tandem::conv_bench {

namespace {

using kernels::PassKind;

constexpr std::array<std::string_view, 5> kPassNames{"fwd", "dgrad", "wgrad", "bwd", "both"};

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

std::vector<Work> parts_of(const Workload& workload, Pass pass, std::optional<kernels::ConvImpl> impl) {
  const kernels::ConvGeometry g = workload.geometry();
  const auto element = static_cast<double>(size_of(workload.dtype()));
  const auto x = element * static_cast<double>(g.input_numel()), y = element * static_cast<double>(g.output_numel());
  const auto w = element * static_cast<double>(g.weight_numel()), bias = element * static_cast<double>(g.k);
  const double mask = static_cast<double>(g.output_numel()) / 8.0;
  const double flops = 2.0 * static_cast<double>(g.output_numel()) * static_cast<double>(g.c * g.r * g.s);
  const auto done = [&](PassKind part, const kernels::TunedWork& beside) {
    if (!impl || workload.x.device().type != DeviceType::cpu) return flops;
    return 2.0 * static_cast<double>(kernels::cpu::conv_products(g, workload.dtype(), *impl, part, beside));
  };
  std::vector<Work> parts;
  if (has_forward(pass))
    parts.push_back(
        {flops, done(PassKind::forward, {.bias = true, .relu = true, .mask = true}), x + w + bias + y + mask});
  if (has_input_gradient(pass) && !workload.layer.is_first)
    parts.push_back({flops, done(PassKind::backward_input, {.mask = true}), y + mask + w + x});
  if (has_weight_gradient(pass)) {
    parts.push_back({flops, done(PassKind::backward_weight, {.mask = true, .sums = true}), x + y + mask + w + bias});
  }
  return parts;
}

Work sum_of(const std::vector<Work>& parts) {
  Work sum;
  for (const Work& part : parts) {
    sum.flops += part.flops;
    sum.done_flops += part.done_flops;
    sum.bytes += part.bytes;
  }
  return sum;
}

std::optional<double> floor_of(const std::vector<Work>& parts, DType dtype, const Ceilings& ceilings) {
  const double flops = ceilings.flops(dtype);
  if (flops <= 0.0 || ceilings.bandwidth <= 0.0) return {};
  double seconds = 0.0;
  for (const Work& part : parts) seconds += std::max(part.done_flops / flops, part.bytes / ceilings.bandwidth);
  return seconds;
}

bool raise_ceiling(Ceilings& ceilings, DType dtype, double flops, std::string_view reached_by) {
  const bool half = dtype == DType::f16 || dtype == DType::bf16;
  double& ceiling = half ? ceilings.flops_half : ceilings.flops_f32;
  if (ceiling <= 0.0 || flops <= ceiling) return false;
  ceiling = flops;
  const std::string_view kind = half ? "half" : "f32";
  const std::string note = fmt::format("; {} raised to what {} reached", kind, reached_by);
  // One note per kind: the last one holds.
  const std::size_t old = ceilings.source.find(fmt::format("; {} raised to what ", kind));
  if (old != std::string::npos) ceilings.source.erase(old, ceilings.source.find(';', old + 1) - old);
  ceilings.source += note;
  return true;
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
