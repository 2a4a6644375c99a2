// Adam and AdamW: one fused pass over all parameters. f64 is the reference for f32 and below.
#include "kernels/optimizer/adam.h"
#include "kernels/cuda_choice.h"
#include "kernels/optimizer/tensor_list.h"
#include "kernels/written.h"

#include <cmath>

namespace tandem::kernels {

namespace {

/// The factors of one step, in the type it is computed in.
template <typename S>
struct Factors {
  S keep, weight_decay, fresh1, beta2, fresh2, inverse_bias2, eps, step_size;

  Factors(const AdamOptions& options, std::int64_t step) {
    const auto count = static_cast<double>(step);
    const bool decoupled = options.decoupled_weight_decay;
    keep = static_cast<S>(decoupled ? 1.0 - options.lr * options.weight_decay : 1.0);
    weight_decay = static_cast<S>(decoupled ? 0.0 : options.weight_decay);
    fresh1 = static_cast<S>(1.0 - options.beta1);
    beta2 = static_cast<S>(options.beta2);
    fresh2 = static_cast<S>(1.0 - options.beta2);
    inverse_bias2 = static_cast<S>(1.0 / std::sqrt(1.0 - std::pow(options.beta2, count)));
    eps = static_cast<S>(options.eps);
    step_size = static_cast<S>(options.lr / (1.0 - std::pow(options.beta1, count)));
  }
};

template <bool kAmsgrad, typename T, typename S>
void update(const Factors<S>& f, std::int64_t count, T* __restrict parameter, const T* __restrict gradient,
            S* __restrict exp_avg, S* __restrict exp_avg_sq, S* __restrict max_exp_avg_sq) {
  for (std::int64_t i = 0; i < count; ++i) {
    const S value = static_cast<S>(parameter[i]) * f.keep;
    const S g = static_cast<S>(gradient[i]) + f.weight_decay * value;
    const S first = exp_avg[i] + (g - exp_avg[i]) * f.fresh1;
    S second = f.beta2 * exp_avg_sq[i] + f.fresh2 * (g * g);
    exp_avg[i] = first;
    exp_avg_sq[i] = second;
    if constexpr (kAmsgrad) {
      second = max_exp_avg_sq[i] > second ? max_exp_avg_sq[i] : second;
      max_exp_avg_sq[i] = second;
    }
    parameter[i] = T(value - f.step_size * (first / (std::sqrt(second) * f.inverse_bias2 + f.eps)));
  }
}

template <typename T>
void step_part(const AdamItem& item, const AdamOptions& options, std::int64_t begin, std::int64_t end) {
  using S = compute_t<T>;
  const bool amsgrad = item.max_exp_avg_sq.defined();
  const auto run = amsgrad ? update<true, T, S> : update<false, T, S>;
  run(Factors<S>(options, item.step), end - begin, item.parameter.data<T>() + begin, item.gradient.data<T>() + begin,
      item.exp_avg.data<S>() + begin, item.exp_avg_sq.data<S>() + begin,
      amsgrad ? item.max_exp_avg_sq.data<S>() + begin : nullptr);
}

}  // namespace

void adam_step(std::span<const AdamItem> items, const AdamOptions& options) {
  constexpr std::string_view kOp = "adam_step";
  std::vector<std::int64_t> sizes;
  for (const AdamItem& item : items) {
    const DType dtype = item.parameter.dtype(), state_dtype = optimizer_state_dtype(dtype);
    require(item.step >= 1, "{}: steps count from 1, got {}", kOp, item.step);
    require_alike(kOp, "the gradient", item.gradient, item.parameter, dtype);
    require_alike(kOp, "exp_avg", item.exp_avg, item.parameter, state_dtype);
    require_alike(kOp, "exp_avg_sq", item.exp_avg_sq, item.parameter, state_dtype);
    if (item.max_exp_avg_sq.defined())
      require_alike(kOp, "max_exp_avg_sq", item.max_exp_avg_sq, item.parameter, state_dtype);
    mark_written(item.parameter, item.exp_avg, item.exp_avg_sq, item.max_exp_avg_sq);
    require_one_device(kOp, items.front().parameter, item.parameter);
    sizes.push_back(item.parameter.numel());
  }
  if constexpr (kHasCuda)
    if (!items.empty())
      if (const CudaOp op{kOp, items.front().parameter}) return cuda::adam_step(items, options);
  for_each_part(sizes, [&](std::size_t index, std::int64_t begin, std::int64_t end) {
    const AdamItem& item = items[index];
    dispatch_floating(item.parameter.dtype(), kOp,
                      [&](auto tag) { step_part<typename decltype(tag)::type>(item, options, begin, end); });
  });
}

}  // namespace tandem::kernels
