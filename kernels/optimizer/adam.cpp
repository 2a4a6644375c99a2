// Adam and AdamW: one fused pass over all parameters. f64 is the reference for f32 and below.
#include "tandem/kernels/optimizer/adam.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/optimizer/adam_implementations.h"
#include "tandem/kernels/optimizer/update.h"
#include "tandem/kernels/traffic.h"

#include <cmath>

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

Factors<double> factors_of(const AdamOptions& options, std::int64_t step) {
  const auto count = static_cast<double>(step);
  const bool decoupled = options.decoupled_weight_decay;
  return {.gradient = options.gradient_factor,
          .keep = decoupled ? 1.0 - options.lr * options.weight_decay : 1.0,
          .weight_decay = decoupled ? 0.0 : options.weight_decay,
          .fresh1 = 1.0 - options.beta1,
          .beta2 = options.beta2,
          .fresh2 = 1.0 - options.beta2,
          .inverse_bias2 = 1.0 / std::sqrt(1.0 - std::pow(options.beta2, count)),
          .eps = options.eps,
          .step_size = options.lr / (1.0 - std::pow(options.beta1, count))};
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

}  // namespace

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
    note_traffic(item.gradient, item.parameter, item.master.defined() ? item.master : item.parameter, item.master,
                 item.exp_avg, item.exp_avg, item.exp_avg_sq, item.exp_avg_sq, item.max_exp_avg_sq,
                 item.max_exp_avg_sq);
    sizes.push_back(item.parameter.numel());
  }
  if (items.empty()) return;
  check_skip(kOp, options.skip, items.front().parameter.device());
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, items.front().parameter}) return cuda::adam_step(items, options);
  if (is_skipped(options.skip)) return;
  for_each_part(sizes, [&](std::size_t index, std::int64_t begin, std::int64_t end) {
    const AdamItem& item = items[index];
    const Factors<double> factors = factors_of(options, item.step);
    detail::step_elements({item.parameter, item.gradient, item.master}, begin, end,
                          [&](auto* parameter, const auto* gradient, std::int64_t first, std::int64_t count) {
                            step_run(item, factors, first, count, parameter, gradient);
                          });
  });
}

}  // namespace tandem::kernels
