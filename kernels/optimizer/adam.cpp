// Adam and AdamW: one fused pass over all parameters. f64 is the reference for f32 and below.
#include "tandem/kernels/optimizer/adam.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/optimizer/adam_implementations.h"
#include "tandem/kernels/optimizer/loss_scale.h"
#include "tandem/kernels/optimizer/update.h"
#include "tandem/kernels/traffic.h"

#include <cmath>
#include <cstring>

namespace tandem::kernels {

namespace {

/// The factors of one step, in the type it is computed in.
template <typename S>
struct Factors {
  S gradient, keep, weight_decay, fresh1, beta2, fresh2, inverse_bias2, eps, step_size;

  template <typename Other>
  Factors<Other> as() const {
    const auto cast = [](S value) { return static_cast<Other>(value); };
    return {cast(gradient), cast(keep),          cast(weight_decay), cast(fresh1),   cast(beta2),
            cast(fresh2),   cast(inverse_bias2), cast(eps),          cast(step_size)};
  }
};

/// beta1^step and beta2^step.
struct Powers {
  double beta1, beta2;
};

/// Counts the step where the item has a count.
Powers powers_of(const AdamItem& item, const AdamOptions& options) {
  if (!item.count.defined()) {
    const auto step = static_cast<double>(item.step);
    return {std::pow(options.beta1, step), std::pow(options.beta2, step)};
  }
  std::int64_t steps = 0;  // the first member of an AdamCount; the others are a GPU's
  std::memcpy(&steps, item.count.raw_data(), sizeof(steps));
  ++steps;
  std::memcpy(item.count.raw_data(), &steps, sizeof(steps));
  return {integer_power(options.beta1, steps), integer_power(options.beta2, steps)};
}

Factors<double> make_factors(const AdamOptions& options, const StepFactors& step, const Powers& powers) {
  return {.gradient = step.gradient_factor,
          .keep = step.keep,
          .weight_decay = step.weight_decay,
          .fresh1 = 1.0 - options.beta1,
          .beta2 = options.beta2,
          .fresh2 = 1.0 - options.beta2,
          .inverse_bias2 = 1.0 / std::sqrt(1.0 - powers.beta2),
          .eps = options.eps,
          .step_size = step.lr / (1.0 - powers.beta1)};
}

template <bool kAmsgrad, typename S>
void update(const Factors<S>& f, std::int64_t count, S* __restrict parameter, const S* __restrict gradient,
            S* __restrict exp_avg, S* __restrict exp_avg_sq, S* __restrict max_exp_avg_sq) {
  for (std::int64_t i = 0; i < count; ++i) {
    const S value = parameter[i] * f.keep;
    const S g = f.gradient * gradient[i] + f.weight_decay * value;
    const S first = exp_avg[i] + (g - exp_avg[i]) * f.fresh1;
    S second = f.beta2 * exp_avg_sq[i] + f.fresh2 * (g * g);
    exp_avg[i] = first;
    exp_avg_sq[i] = second;
    if constexpr (kAmsgrad) {
      second = max_exp_avg_sq[i] > second ? max_exp_avg_sq[i] : second;
      max_exp_avg_sq[i] = second;
    }
    parameter[i] = value - f.step_size * (first / (std::sqrt(second) * f.inverse_bias2 + f.eps));
  }
}

template <typename S>
void step_run(const AdamItem& item, const Factors<double>& factors, std::int64_t first, std::int64_t count,
              S* parameter, const S* gradient) {
  const auto run = item.max_exp_avg_sq.defined() ? update<true, S> : update<false, S>;
  run(factors.as<S>(), count, parameter, gradient, item.exp_avg.data<S>() + first, item.exp_avg_sq.data<S>() + first,
      detail::state_at<S>(item.max_exp_avg_sq, first));
}

/// Throws Error unless the item's count can be one.
void check_count(std::string_view op, const AdamItem& item) {
  const Tensor& count = item.count;
  if (!count.defined()) return;
  constexpr std::int64_t kBytes = sizeof(AdamCount);
  require(count.dtype() == DType::u8 && count.shape() == Shape{kBytes} && count.is_dense() &&
              reinterpret_cast<std::uintptr_t>(count.raw_data()) % alignof(AdamCount) == 0,
          "{}: the count of steps of parameter {} must be a dense u8[{}] at a multiple of {} bytes, got {}", op,
          describe(item.parameter), kBytes, alignof(AdamCount), describe(count));
  require_one_device(op, item.parameter, count);
}

}  // namespace

StepFactors factors_of(const AdamOptions& options) {
  const bool decoupled = options.decoupled_weight_decay;
  return {.lr = options.lr,
          .weight_decay = decoupled ? 0.0 : options.weight_decay,
          .gradient_factor = options.gradient_factor,
          .keep = decoupled ? 1.0 - options.lr * options.weight_decay : 1.0};
}

void adam_step(std::span<const AdamItem> items, const AdamOptions& options) {
  constexpr std::string_view kOp = "adam_step";
  std::vector<std::int64_t> sizes;
  for (const AdamItem& item : items) {
    const DType state_dtype = optimizer_state_dtype(item.parameter.dtype());
    require(item.step >= 1, "{}: steps count from 1, got {}", kOp, item.step);
    check_update(kOp, {item.parameter, item.gradient, item.master});
    require_alike(kOp, "exp_avg", item.exp_avg, item.parameter, state_dtype);
    require_alike(kOp, "exp_avg_sq", item.exp_avg_sq, item.parameter, state_dtype);
    if (item.max_exp_avg_sq.defined())
      require_alike(kOp, "max_exp_avg_sq", item.max_exp_avg_sq, item.parameter, state_dtype);
    require_one_device(kOp, items.front().parameter, item.parameter);
    check_count(kOp, item);
    note_traffic(item.gradient, item.parameter, item.master.defined() ? item.master : item.parameter, item.master,
                 item.exp_avg, item.exp_avg, item.exp_avg_sq, item.exp_avg_sq, item.max_exp_avg_sq,
                 item.max_exp_avg_sq);
    sizes.push_back(item.parameter.numel());
  }
  if (items.empty()) return;
  check_skip(kOp, options.skip, items.front().parameter.device());
  check_control(kOp, options.control, items.front().parameter.device());
  check_loss_scale(kOp, options.loss_scale, items.front().parameter.device());
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, items.front().parameter}) return cuda::adam_step(items, options);
  if (is_skipped(options.skip)) return;
  const StepFactors step = factors_on_cpu(options.control, factors_of(options), options.loss_scale);
  std::vector<Factors<double>> factors_of_each;
  for (const AdamItem& item : items) factors_of_each.push_back(make_factors(options, step, powers_of(item, options)));
  for_each_part(sizes, [&](std::size_t index, std::int64_t begin, std::int64_t end) {
    const AdamItem& item = items[index];
    const Factors<double>& factors = factors_of_each[index];
    detail::step_elements({item.parameter, item.gradient, item.master}, begin, end,
                          [&](auto* parameter, const auto* gradient, std::int64_t first, std::int64_t count) {
                            step_run(item, factors, first, count, parameter, gradient);
                          });
  });
}

}  // namespace tandem::kernels
