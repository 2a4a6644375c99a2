// Stochastic gradient descent: one fused pass over all parameters. f64 is the reference for f32 and below.
#include "kernels/optimizer/sgd.h"
#include "kernels/cuda_choice.h"
#include "kernels/optimizer/tensor_list.h"
#include "kernels/written.h"

namespace tandem::kernels {

namespace {

/// The factors of one step, in the type it is computed in.
template <typename S>
struct Factors {
  S lr, momentum, fresh, weight_decay;
};

template <typename T, typename S>
void descend(const Factors<S>& f, std::int64_t count, T* __restrict parameter, const T* __restrict gradient) {
  for (std::int64_t i = 0; i < count; ++i) {
    const S value = static_cast<S>(parameter[i]);
    parameter[i] = T(value - f.lr * (static_cast<S>(gradient[i]) + f.weight_decay * value));
  }
}

template <bool kNesterov, typename T, typename S>
void descend_with_momentum(const Factors<S>& f, std::int64_t count, T* __restrict parameter,
                           const T* __restrict gradient, S* __restrict buffer) {
  for (std::int64_t i = 0; i < count; ++i) {
    const S value = static_cast<S>(parameter[i]);
    const S g = static_cast<S>(gradient[i]) + f.weight_decay * value;
    const S velocity = f.momentum * buffer[i] + f.fresh * g;
    buffer[i] = velocity;
    parameter[i] = T(value - f.lr * (kNesterov ? g + f.momentum * velocity : velocity));
  }
}

template <typename T>
void step_part(const SgdItem& item, const SgdOptions& options, std::int64_t begin, std::int64_t end) {
  using S = compute_t<T>;
  const Factors<S> factors{static_cast<S>(options.lr), static_cast<S>(options.momentum),
                           static_cast<S>(item.is_first_step ? 1.0 : 1.0 - options.dampening),
                           static_cast<S>(options.weight_decay)};
  T* const parameter = item.parameter.data<T>() + begin;
  const T* const gradient = item.gradient.data<T>() + begin;
  if (options.momentum == 0.0) return descend(factors, end - begin, parameter, gradient);
  S* const buffer = item.momentum_buffer.data<S>() + begin;
  if (item.is_first_step) std::fill(buffer, buffer + (end - begin), S(0));
  const auto run = options.nesterov ? descend_with_momentum<true, T, S> : descend_with_momentum<false, T, S>;
  run(factors, end - begin, parameter, gradient, buffer);
}

}  // namespace

void sgd_step(std::span<const SgdItem> items, const SgdOptions& options) {
  constexpr std::string_view kOp = "sgd_step";
  std::vector<std::int64_t> sizes;
  for (const SgdItem& item : items) {
    const DType dtype = item.parameter.dtype();
    require_alike(kOp, "the gradient", item.gradient, item.parameter, dtype);
    if (options.momentum != 0.0) {
      require_alike(kOp, "the momentum buffer", item.momentum_buffer, item.parameter, optimizer_state_dtype(dtype));
      mark_written(item.momentum_buffer);
    }
    mark_written(item.parameter);
    require_one_device(kOp, items.front().parameter, item.parameter);
    sizes.push_back(item.parameter.numel());
  }
  if constexpr (kHasCuda)
    if (!items.empty())
      if (const CudaOp op{kOp, items.front().parameter}) return cuda::sgd_step(items, options);
  for_each_part(sizes, [&](std::size_t index, std::int64_t begin, std::int64_t end) {
    const SgdItem& item = items[index];
    dispatch_floating(item.parameter.dtype(), kOp,
                      [&](auto tag) { step_part<typename decltype(tag)::type>(item, options, begin, end); });
  });
}

}  // namespace tandem::kernels
