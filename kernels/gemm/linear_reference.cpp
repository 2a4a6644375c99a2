// linear in plain loops: the oracle, and the path of f64.
#include "tandem/kernels/gemm/linear_implementations.h"

namespace tandem::kernels::reference {
namespace {

template <typename T>
T rounded(double value) {
  return static_cast<T>(static_cast<compute_t<T>>(value));
}

}  // namespace

void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu, const Out& y) {
  const std::int64_t rows = x.size(0), inputs = x.size(1), outputs = weight.size(0);
  dispatch_floating(x.dtype(), "linear_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *px = x.data<T>(), *pw = weight.data<T>(), *pb = bias.defined() ? bias.data<T>() : nullptr;
    T* py = y.data<T>();
    for (std::int64_t m = 0; m < rows; ++m)
      for (std::int64_t o = 0; o < outputs; ++o) {
        double sum = pb != nullptr ? static_cast<double>(pb[o]) : 0.0;
        for (std::int64_t i = 0; i < inputs; ++i)
          sum += static_cast<double>(px[m * inputs + i]) * static_cast<double>(pw[o * inputs + i]);
        py[m * outputs + o] = rounded<T>(relu && sum < 0.0 ? 0.0 : sum);
      }
  });
}

void linear_backward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& grad_y, const Out& grad_x,
                     const Out& grad_weight, const Out& grad_bias) {
  const std::int64_t rows = x.size(0), inputs = x.size(1), outputs = weight.size(0);
  dispatch_floating(x.dtype(), "linear_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *px = x.data<T>(), *pw = weight.data<T>(), *pg = grad_y.data<T>();
    const T* py = y.defined() ? y.data<T>() : nullptr;
    const auto gradient = [&](std::int64_t m, std::int64_t o) {
      const std::int64_t at = m * outputs + o;
      return py != nullptr && static_cast<double>(py[at]) <= 0.0 ? 0.0 : static_cast<double>(pg[at]);
    };
    for (std::int64_t m = 0; grad_x.defined() && m < rows; ++m)
      for (std::int64_t i = 0; i < inputs; ++i) {
        double sum = 0.0;
        for (std::int64_t o = 0; o < outputs; ++o) sum += gradient(m, o) * static_cast<double>(pw[o * inputs + i]);
        grad_x.data<T>()[m * inputs + i] = rounded<T>(sum);
      }
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t i = 0; grad_weight.defined() && i < inputs; ++i) {
        double sum = 0.0;
        for (std::int64_t m = 0; m < rows; ++m) sum += gradient(m, o) * static_cast<double>(px[m * inputs + i]);
        grad_weight.data<T>()[o * inputs + i] = rounded<T>(sum);
      }
      double sum = 0.0;
      for (std::int64_t m = 0; grad_bias.defined() && m < rows; ++m) sum += gradient(m, o);
      if (grad_bias.defined()) grad_bias.data<T>()[o] = rounded<T>(sum);
    }
  });
}

}  // namespace tandem::kernels::reference
