// Stochastic gradient descent: one fused pass over all parameters. f64 is the reference for f32 and below.
#include "tandem/kernels/optimizer/sgd.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/optimizer/loss_scale.h"
#include "tandem/kernels/optimizer/sgd_implementations.h"
#include "tandem/kernels/optimizer/update.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

namespace {

/// The factors of one step, in the type it is computed in.
template <typename S>
struct Factors {
  S lr, momentum, fresh, weight_decay, gradient;
};

template <typename S>
void descend(const Factors<S>& f, std::int64_t count, S* __restrict parameter, const S* __restrict gradient) {
  for (std::int64_t i = 0; i < count; ++i) {
    parameter[i] -= f.lr * (f.gradient * gradient[i] + f.weight_decay * parameter[i]);
  }
}

template <bool kNesterov, typename S>
void descend_with_momentum(const Factors<S>& f, std::int64_t count, S* __restrict parameter,
                           const S* __restrict gradient, S* __restrict buffer) {
  for (std::int64_t i = 0; i < count; ++i) {
    const S g = f.gradient * gradient[i] + f.weight_decay * parameter[i];
    const S velocity = f.momentum * buffer[i] + f.fresh * g;
    buffer[i] = velocity;
    parameter[i] -= f.lr * (kNesterov ? g + f.momentum * velocity : velocity);
  }
}

template <typename S>
void step_run(const SgdItem& item, const SgdOptions& options, const StepFactors& step, std::int64_t first,
              std::int64_t count, S* parameter, const S* gradient) {
  const Factors<S> factors{static_cast<S>(step.lr), static_cast<S>(step.momentum),
                           static_cast<S>(item.is_first_step ? 1.0 : 1.0 - options.dampening),
                           static_cast<S>(step.weight_decay), static_cast<S>(step.gradient_factor)};
  if (options.momentum == 0.0) return descend(factors, count, parameter, gradient);
  S* const buffer = item.momentum_buffer.data<S>() + first;
  if (item.is_first_step) std::fill(buffer, buffer + count, S(0));
  const auto run = options.nesterov ? descend_with_momentum<true, S> : descend_with_momentum<false, S>;
  run(factors, count, parameter, gradient, buffer);
}

}  // namespace

StepFactors factors_of(const SgdOptions& options) {
  return {.lr = options.lr,
          .momentum = options.momentum,
          .weight_decay = options.weight_decay,
          .gradient_factor = options.gradient_factor};
}

void sgd_step(std::span<const SgdItem> items, const SgdOptions& options) {
  constexpr std::string_view kOp = "sgd_step";
  std::vector<std::int64_t> sizes;
  for (const SgdItem& item : items) {
    const DType dtype = item.parameter.dtype();
    check_update(kOp, {item.parameter, item.gradient, item.master});
    if (options.momentum != 0.0) {
      require_alike(kOp, "the momentum buffer", item.momentum_buffer, item.parameter, optimizer_state_dtype(dtype));
    }
    require_one_device(kOp, items.front().parameter, item.parameter);
    note_traffic(item.gradient, item.parameter, item.master.defined() ? item.master : item.parameter, item.master,
                 item.momentum_buffer, item.momentum_buffer);
    sizes.push_back(item.parameter.numel());
  }
  if (items.empty()) return;
  check_skip(kOp, options.skip, items.front().parameter.device());
  check_control(kOp, options.control, items.front().parameter.device());
  check_loss_scale(kOp, options.loss_scale, items.front().parameter.device());
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, items.front().parameter}) return cuda::sgd_step(items, options);
  if (is_skipped(options.skip)) return;
  const StepFactors step = factors_on_cpu(options.control, factors_of(options), options.loss_scale);
  for_each_part(sizes, [&](std::size_t index, std::int64_t begin, std::int64_t end) {
    const SgdItem& item = items[index];
    detail::step_elements({item.parameter, item.gradient, item.master}, begin, end,
                          [&](auto* parameter, const auto* gradient, std::int64_t first, std::int64_t count) {
                            step_run(item, options, step, first, count, parameter, gradient);
                          });
  });
}

}  // namespace tandem::kernels
