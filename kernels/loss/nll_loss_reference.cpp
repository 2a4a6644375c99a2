// Negative log likelihood in plain loops: any strides, any floating dtype.
#include "tandem/kernels/loss/nll_loss_implementations.h"

#include <vector>

namespace tandem::kernels::reference {

namespace {

/// What rows count, by their labels.
struct RowWeights {
  std::vector<double> of_classes;
  std::optional<std::int64_t> ignore_index;

  explicit RowWeights(const LabelWeights& weights)
      : of_classes(weights.of_classes.defined() ? weights.of_classes.to_vector<double>() : std::vector<double>()),
        ignore_index(weights.ignore_index) {}

  bool ignores(std::int64_t label) const { return label == ignore_index; }
  double of(std::int64_t label) const {
    if (ignores(label)) return 0.0;
    return of_classes.empty() ? 1.0 : of_classes[static_cast<std::size_t>(label)];
  }
};

}  // namespace

void nll_loss_forward(const Tensor& log_probabilities, const Tensor& labels, const Out& losses,
                      const LabelWeights& weights, const Out& row_weights) {
  const RowWeights counts(weights);
  const std::int64_t row_stride = log_probabilities.stride(0), class_stride = log_probabilities.stride(1);
  const std::int64_t* const labels_of_rows = labels.data<std::int64_t>();
  dispatch_floating(log_probabilities.dtype(), "nll_loss", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const T* const from = log_probabilities.data<T>();
    for (std::int64_t n = 0; n < losses.size(0); ++n) {
      const std::int64_t label = labels_of_rows[n * labels.stride(0)];
      const auto weight = static_cast<C>(counts.of(label));
      // An ignored label has no element.
      const C value = counts.ignores(label) ? C{} : -static_cast<C>(from[n * row_stride + label * class_stride]);
      losses.data<C>()[n * losses.stride(0)] = weight * value;
      if (row_weights.defined()) row_weights.data<C>()[n * row_weights.stride(0)] = weight;
    }
  });
}

void nll_loss_backward(const Tensor& labels, const Tensor& grad_losses, const Out& grad, const LabelWeights& weights) {
  const RowWeights counts(weights);
  grad.zero();
  const std::int64_t* const labels_of_rows = labels.data<std::int64_t>();
  dispatch_floating(grad.dtype(), "nll_loss_backward", [&]<typename T>(TypeTag<T>) {
    dispatch_floating(grad_losses.dtype(), "nll_loss_backward", [&]<typename G>(TypeTag<G>) {
      const G* const from = grad_losses.data<G>();
      T* const to = grad.data<T>();
      for (std::int64_t n = 0; n < grad.size(0); ++n) {
        const std::int64_t label = labels_of_rows[n * labels.stride(0)];
        if (counts.ignores(label)) continue;
        const auto loss_gradient =
            static_cast<compute_t<T>>(static_cast<compute_t<G>>(from[n * grad_losses.stride(0)]));
        const auto weight = static_cast<compute_t<T>>(counts.of(label));
        to[n * grad.stride(0) + label * grad.stride(1)] = static_cast<T>(-(weight * loss_gradient));
      }
    });
  });
}

}  // namespace tandem::kernels::reference
