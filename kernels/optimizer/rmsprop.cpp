// RMSprop: one fused pass over all parameters. f64 is the reference for f32 and below.
#include "tandem/kernels/optimizer/rmsprop.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/optimizer/loss_scale.h"
#include "tandem/kernels/optimizer/rmsprop_implementations.h"
#include "tandem/kernels/optimizer/update.h"
#include "tandem/kernels/traffic.h"

#include <cmath>

namespace tandem::kernels {

namespace {

/// The factors of one step, in the type it is computed in.
template <typename S>
struct Factors {
  S lr, alpha, fresh, eps, weight_decay, momentum, gradient;
};

template <bool kMomentum, bool kCentered, typename S>
void update(const Factors<S>& f, std::int64_t count, S* __restrict parameter, const S* __restrict gradient,
            S* __restrict square_avg, S* __restrict momentum_buffer, S* __restrict grad_avg) {
  for (std::int64_t i = 0; i < count; ++i) {
    const S g = f.gradient * gradient[i] + f.weight_decay * parameter[i];
    S variance = f.alpha * square_avg[i] + f.fresh * (g * g);
    square_avg[i] = variance;
    if constexpr (kCentered) {
      const S mean = grad_avg[i] + (g - grad_avg[i]) * f.fresh;
      grad_avg[i] = mean;
      variance -= mean * mean;
    }
    S change = g / (std::sqrt(variance) + f.eps);
    if constexpr (kMomentum) {
      change += f.momentum * momentum_buffer[i];
      momentum_buffer[i] = change;
    }
    parameter[i] -= f.lr * change;
  }
}

template <typename S>
void step_run(const RmspropItem& item, const RmspropOptions& options, const StepFactors& step, std::int64_t first,
              std::int64_t count, S* parameter, const S* gradient) {
  const Factors<S> factors{static_cast<S>(step.lr),
                           static_cast<S>(options.alpha),
                           static_cast<S>(1.0 - options.alpha),
                           static_cast<S>(options.eps),
                           static_cast<S>(step.weight_decay),
                           static_cast<S>(step.momentum),
                           static_cast<S>(step.gradient_factor)};
  const bool momentum = options.momentum != 0.0, centered = item.grad_avg.defined();
  const auto run = momentum ? (centered ? update<true, true, S> : update<true, false, S>)
                            : (centered ? update<false, true, S> : update<false, false, S>);
  run(factors, count, parameter, gradient, detail::state_at<S>(item.square_avg, first),
      detail::state_at<S>(item.momentum_buffer, first), detail::state_at<S>(item.grad_avg, first));
}

}  // namespace

StepFactors factors_of(const RmspropOptions& options) {
  return {.lr = options.lr,
          .momentum = options.momentum,
          .weight_decay = options.weight_decay,
          .gradient_factor = options.gradient_factor};
}

void rmsprop_step(std::span<const RmspropItem> items, const RmspropOptions& options) {
  constexpr std::string_view kOp = "rmsprop_step";
  std::vector<std::int64_t> sizes;
  for (const RmspropItem& item : items) {
    const DType state_dtype = optimizer_state_dtype(item.parameter.dtype());
    check_update(kOp, {item.parameter, item.gradient, item.master});
    require_alike(kOp, "square_avg", item.square_avg, item.parameter, state_dtype);
    if (options.momentum != 0.0)
      require_alike(kOp, "the momentum buffer", item.momentum_buffer, item.parameter, state_dtype);
    if (item.grad_avg.defined()) require_alike(kOp, "grad_avg", item.grad_avg, item.parameter, state_dtype);
    require_one_device(kOp, items.front().parameter, item.parameter);
    note_traffic(item.gradient, item.parameter, item.master.defined() ? item.master : item.parameter, item.master,
                 item.square_avg, item.square_avg, item.momentum_buffer, item.momentum_buffer, item.grad_avg,
                 item.grad_avg);
    sizes.push_back(item.parameter.numel());
  }
  if (items.empty()) return;
  check_skip(kOp, options.skip, items.front().parameter.device());
  check_control(kOp, options.control, items.front().parameter.device());
  check_loss_scale(kOp, options.loss_scale, items.front().parameter.device());
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, items.front().parameter}) return cuda::rmsprop_step(items, options);
  if (is_skipped(options.skip)) return;
  const StepFactors step = factors_on_cpu(options.control, factors_of(options), options.loss_scale);
  for_each_part(sizes, [&](std::size_t index, std::int64_t begin, std::int64_t end) {
    const RmspropItem& item = items[index];
    detail::step_elements({item.parameter, item.gradient, item.master}, begin, end,
                          [&](auto* parameter, const auto* gradient, std::int64_t first, std::int64_t count) {
                            step_run(item, options, step, first, count, parameter, gradient);
                          });
  });
}

}  // namespace tandem::kernels
