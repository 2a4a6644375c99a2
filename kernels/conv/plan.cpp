// Plans: checks, and the choice of who runs.
#include "tandem/kernels/conv/plan.h"

#include "tandem/kernels/conv/checks.h"
#include "tandem/kernels/conv/cudnn/conv_library.h"
#include "tandem/kernels/conv/implementations.h"
#include "tandem/kernels/cuda_choice.h"

#include <atomic>

namespace tandem::kernels {
namespace {

std::atomic<std::int64_t>& choices() {
  static std::atomic<std::int64_t> count = 0;
  return count;
}

}  // namespace

namespace conv_checks {

void check(std::string_view op, std::string_view name, const Tensor& tensor, const Shape& shape, DType dtype,
           bool optional) {
  if (!tensor.defined()) {
    require(optional, "{}: {} is undefined", op, name);
    return;
  }
  require(tensor.shape() == shape, "{}: {} should have shape {}, got {}", op, name, shape, tensor);
  require(tensor.dtype() == dtype, "{}: {} should be {}, got {}", op, name, name_of(dtype), tensor);
  require(tensor.is_dense(Layout::channels_last),
          "{}: {} {} is not dense in channels_last order; pass contiguous(Layout::channels_last)", op, name, tensor);
}

ConvPlan plan_without_runners(std::string_view op, const Shape& x, const Tensor& w, const Conv2dOptions& options) {
  require(w.defined(), "{}: w is undefined", op);
  if (options.impl != ConvImpl::automatic) {
    const std::string reason = obstacle(options.impl, w.device());
    require(reason.empty(), "{}: {}", op, reason);
  }
  return {.geometry = make_geometry(x, w.shape(), options),
          .impl = options.impl,
          .dtype = w.dtype(),
          .device = w.device(),
          .forward = {},
          .backward_input = {},
          .backward_weight = {}};
}

}  // namespace conv_checks

ConvPlan plan_conv(const Tensor& x, const Tensor& w, const Conv2dOptions& options, const ConvRequest& request) {
  using namespace conv_checks;
  require(x.defined(), "{}: x is undefined", request.op);
  ConvPlan plan = plan_without_runners(request.op, x.shape(), w, options);
  check(request.op, "w", w, w.shape(), plan.dtype);
  check(request.op, "x", x, x.shape(), plan.dtype);
  require_one_device(request.op, x, w);
  count_conv_choice();
  if (plan.device.type == DeviceType::cuda) {
    if constexpr (kHasCuda) cuda::plan_conv(request, x, w, plan);
  } else {
    const ConvRunner runner{.on_cpu = cpu::choose_conv(plan.geometry, plan.dtype, plan.impl)};
    plan.forward = plan.backward_input = plan.backward_weight = runner;
  }
  return plan;
}

bool conv_fuses_layer_below(const ConvPlan& plan, const Tensor& x, const Tensor& w) {
  if (!plan.backward_input.is_chosen() || plan.device.type != DeviceType::cuda) return false;
  if constexpr (kHasCuda) return cuda::fuses_layer_below(plan, x, w);
  return false;
}

std::int64_t conv_choices() { return choices(); }

void count_conv_choice() { ++choices(); }

}  // namespace tandem::kernels
