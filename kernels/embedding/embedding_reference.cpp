// Looking up rows in plain loops; gradients are added up in double.
#include "tandem/kernels/embedding/embedding_implementations.h"

#include <vector>

namespace tandem::kernels::reference {

void embedding_forward(const Tensor& indices, const Tensor& weight, const Out& y) {
  const std::vector<std::int64_t> index = indices.to_vector<std::int64_t>();
  const std::int64_t features = weight.size(1);
  dispatch_floating(y.dtype(), "embedding", [&]<typename T>(TypeTag<T>) {
    for (std::int64_t i = 0; i < y.numel(); ++i)
      y.data<T>()[i] = weight.data<T>()[index[static_cast<std::size_t>(i / features)] * features + i % features];
  });
}

void embedding_backward(const Tensor& indices, const Tensor& grad_y, const Out& grad_weight) {
  const std::vector<std::int64_t> index = indices.to_vector<std::int64_t>();
  const std::vector<double> gradients = grad_y.to_vector<double>();
  const auto features = static_cast<std::size_t>(grad_weight.size(1));
  std::vector<double> sums(static_cast<std::size_t>(grad_weight.numel()));
  for (std::size_t i = 0; i < gradients.size(); ++i)
    sums[static_cast<std::size_t>(index[i / features]) * features + i % features] += gradients[i];
  dispatch_floating(grad_weight.dtype(), "embedding_backward", [&]<typename T>(TypeTag<T>) {
    for (std::size_t i = 0; i < sums.size(); ++i)
      grad_weight.data<T>()[i] = static_cast<T>(static_cast<compute_t<T>>(sums[i]));
  });
}

}  // namespace tandem::kernels::reference
