// RMSprop: one fused pass over all parameters. f64 is the reference for f32 and below.
#include "kernels/optimizer/rmsprop.h"
#include "kernels/cuda_choice.h"
#include "kernels/optimizer/tensor_list.h"
#include "kernels/written.h"

#include <cmath>

namespace tandem::kernels {

namespace {

/// The factors of one step, in the type it is computed in.
template <typename S>
struct Factors {
  S lr, alpha, fresh, eps, weight_decay, momentum;
};

template <bool kMomentum, bool kCentered, typename T, typename S>
void update(const Factors<S>& f, std::int64_t count, T* __restrict parameter, const T* __restrict gradient,
            S* __restrict square_avg, S* __restrict momentum_buffer, S* __restrict grad_avg) {
  for (std::int64_t i = 0; i < count; ++i) {
    const S value = static_cast<S>(parameter[i]);
    const S g = static_cast<S>(gradient[i]) + f.weight_decay * value;
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
    parameter[i] = T(value - f.lr * change);
  }
}

template <typename T>
void step_part(const RmspropItem& item, const RmspropOptions& options, std::int64_t begin, std::int64_t end) {
  using S = compute_t<T>;
  const Factors<S> factors{static_cast<S>(options.lr),           static_cast<S>(options.alpha),
                           static_cast<S>(1.0 - options.alpha),  static_cast<S>(options.eps),
                           static_cast<S>(options.weight_decay), static_cast<S>(options.momentum)};
  const auto from_begin = [&](const Tensor& state) { return state.defined() ? state.data<S>() + begin : nullptr; };
  const bool momentum = options.momentum != 0.0, centered = item.grad_avg.defined();
  const auto run = momentum ? (centered ? update<true, true, T, S> : update<true, false, T, S>)
                            : (centered ? update<false, true, T, S> : update<false, false, T, S>);
  run(factors, end - begin, item.parameter.data<T>() + begin, item.gradient.data<T>() + begin,
      from_begin(item.square_avg), from_begin(item.momentum_buffer), from_begin(item.grad_avg));
}

}  // namespace

void rmsprop_step(std::span<const RmspropItem> items, const RmspropOptions& options) {
  constexpr std::string_view kOp = "rmsprop_step";
  std::vector<std::int64_t> sizes;
  for (const RmspropItem& item : items) {
    const DType dtype = item.parameter.dtype(), state_dtype = optimizer_state_dtype(dtype);
    require_alike(kOp, "the gradient", item.gradient, item.parameter, dtype);
    require_alike(kOp, "square_avg", item.square_avg, item.parameter, state_dtype);
    if (options.momentum != 0.0)
      require_alike(kOp, "the momentum buffer", item.momentum_buffer, item.parameter, state_dtype);
    if (item.grad_avg.defined()) require_alike(kOp, "grad_avg", item.grad_avg, item.parameter, state_dtype);
    mark_written(item.parameter, item.square_avg, item.momentum_buffer, item.grad_avg);
    require_one_device(kOp, items.front().parameter, item.parameter);
    sizes.push_back(item.parameter.numel());
  }
  if constexpr (kHasCuda)
    if (!items.empty())
      if (const CudaOp op{kOp, items.front().parameter}) return cuda::rmsprop_step(items, options);
  for_each_part(sizes, [&](std::size_t index, std::int64_t begin, std::int64_t end) {
    const RmspropItem& item = items[index];
    dispatch_floating(item.parameter.dtype(), kOp,
                      [&](auto tag) { step_part<typename decltype(tag)::type>(item, options, begin, end); });
  });
}

}  // namespace tandem::kernels
