// Negative log likelihood in plain loops: any strides, any floating dtype.
#include "tandem/kernels/loss/nll_loss_implementations.h"

namespace tandem::kernels::reference {

void nll_loss_forward(const Tensor& log_probabilities, const Tensor& labels, const Out& losses) {
  const std::int64_t row_stride = log_probabilities.stride(0), class_stride = log_probabilities.stride(1);
  const std::int64_t* const label = labels.data<std::int64_t>();
  dispatch_floating(log_probabilities.dtype(), "nll_loss", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const from = log_probabilities.data<T>();
    compute_t<T>* const to = losses.data<compute_t<T>>();
    for (std::int64_t n = 0; n < losses.size(0); ++n) {
      const T value = from[n * row_stride + label[n * labels.stride(0)] * class_stride];
      to[n * losses.stride(0)] = -static_cast<compute_t<T>>(value);
    }
  });
}

void nll_loss_backward(const Tensor& labels, const Tensor& grad_losses, const Out& grad) {
  grad.zero();
  const std::int64_t* const label = labels.data<std::int64_t>();
  dispatch_floating(grad.dtype(), "nll_loss_backward", [&]<typename T>(TypeTag<T>) {
    dispatch_floating(grad_losses.dtype(), "nll_loss_backward", [&]<typename G>(TypeTag<G>) {
      const G* const from = grad_losses.data<G>();
      T* const to = grad.data<T>();
      for (std::int64_t n = 0; n < grad.size(0); ++n) {
        const auto loss_gradient =
            static_cast<compute_t<T>>(static_cast<compute_t<G>>(from[n * grad_losses.stride(0)]));
        to[n * grad.stride(0) + label[n * labels.stride(0)] * grad.stride(1)] = static_cast<T>(-loss_gradient);
      }
    });
  });
}

}  // namespace tandem::kernels::reference
