// The families of convolutions as contestants: each by itself, whomever the rule would choose.
#include "tandem/kernels/conv/families.h"

#include "tandem/core/device_query.h"
#include "tandem/core/has_cuda.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/conv/plan.h"

#include "apps/conv_bench/contestants.h"

namespace tandem::conv_bench {

namespace {

using kernels::ConvPlan;
using kernels::ConvRunner;
using kernels::PassKind;

/// Throws Error where the family does not take the workload.
using RunnerOf = std::function<ConvRunner(const Workload&)>;

ConvPlan plan_with(const Workload& o, const ConvRunner& runner) {
  kernels::Conv2dOptions options = o.layer.options();
  options.impl = kernels::ConvImpl::fused;  // where the tuner does not interfere
  ConvPlan plan = kernels::plan_conv(o.x, o.w, options);
  plan.forward = plan.backward_input = plan.backward_weight = runner;
  return plan;
}

Contestant contestant_of(std::string_view name, DeviceType device, const RunnerOf& runner_of) {
  return {.name = fmt::format("family-{}", name),
          .description = "one family alone",
          .obstacle = [device](Device here) -> std::string {
            if (here.type == device) return "";
            return device == DeviceType::cpu ? "is code for the CPU: give --device cpu"
                                             : "needs a GPU: give --device cuda";
          },
          .forward =
              [runner_of](Workload& o) {
                kernels::conv_bias_relu_forward(plan_with(o, runner_of(o)), o.x, o.w, o.bias, Out(o.y), Out(o.mask));
              },
          .backward =
              [runner_of](Workload& o) {
                kernels::conv_bias_relu_backward(plan_with(o, runner_of(o)),
                                                 {.x = o.x, .w = o.w, .mask = o.mask, .grad_y = o.grad_y},
                                                 {.x = Out(o.grad_x), .w = Out(o.grad_w), .bias = Out(o.grad_bias)});
              }};
}

Contestant on_cpu(const kernels::cpu::ConvFamily<float>& family) {
  const std::string_view name = family.name;
  Contestant made = contestant_of(name, DeviceType::cpu, [name](const Workload& o) -> ConvRunner {
    bool is_taken = false;
    kernels::cpu::dispatch_float(o.dtype(), "conv_bench", [&](auto tag) {
      for (const auto& one : kernels::cpu::conv_families<typename decltype(tag)::type>())
        is_taken = is_taken || (one.name == name && one.supports(o.geometry()));
    });
    require(is_taken, "the family does not take this layer in {}", name_of(o.dtype()));
    return {.on_cpu = name};
  });
  made.impl = family.impl;
  return made;
}

/// A template, as builds without CUDA have not got what it calls: there nothing is made of it.
template <typename Family>
Contestant on_gpu(const Family& family) {
  return contestant_of(family.name, DeviceType::cuda, [&family](const Workload& o) -> ConvRunner {
    const kernels::cuda::Operands operands = kernels::cuda::operands_of(o.dtype(), o.x, o.w, o.y);
    for (const PassKind pass : {PassKind::forward, PassKind::backward_weight, PassKind::backward_input}) {
      if (pass == PassKind::backward_input && !o.grad_x.defined()) continue;
      kernels::cuda::require_no_obstacle("conv_bench", family.obstacle, pass, o.geometry(), operands);
    }
    require(family.backward_input != nullptr || !o.grad_x.defined(), "the family has no gradient of x");
    return {.family = &family};
  });
}

}  // namespace

std::vector<Contestant> family_contestants() {
  std::vector<Contestant> list;
  for (const auto& family : kernels::cpu::conv_families<float>()) list.push_back(on_cpu(family));
  if constexpr (kHasCuda)
    for (const kernels::cuda::ConvFamily& family : kernels::cuda::conv_families()) list.push_back(on_gpu(family));
  return list;
}

}  // namespace tandem::conv_bench
