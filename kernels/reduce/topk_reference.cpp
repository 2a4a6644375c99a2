// The largest or smallest elements of each row, by comparisons: the oracle, and the path of f64.
#include "tandem/kernels/reduce/topk_implementations.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace tandem::kernels::reference {

namespace {

/// NaN is greater than every number.
bool greater(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

}  // namespace

void topk(const Tensor& x, const TopkOptions& options, const Out& values, const Out& indices) {
  dispatch_floating(x.dtype(), "topk", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::int64_t columns = x.size(1), k = indices.size(1);
    std::vector<std::int64_t> order(static_cast<std::size_t>(columns));
    for (std::int64_t r = 0; r < x.size(0); ++r) {
      const T* const row = x.data<T>() + r * columns;
      const auto number = [row](std::int64_t i) { return static_cast<double>(static_cast<compute_t<T>>(row[i])); };
      std::iota(order.begin(), order.end(), std::int64_t{0});
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
        return options.largest ? greater(number(i), number(j)) : greater(number(j), number(i));
      });
      if (!options.sorted) std::sort(order.begin(), order.begin() + k);
      std::copy_n(order.begin(), k, indices.data<std::int64_t>() + r * k);
      for (std::int64_t j = 0; values.defined() && j < k; ++j)
        values.data<T>()[r * k + j] = row[order[static_cast<std::size_t>(j)]];
    }
  });
}

void topk_backward(const Tensor& grad_values, const Tensor& indices, const Out& grad_x) {
  dispatch_floating(grad_x.dtype(), "topk_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::int64_t k = indices.size(1);
    for (std::int64_t i = 0; i < indices.numel(); ++i)
      grad_x.data<T>()[i / k * grad_x.size(1) + indices.data<std::int64_t>()[i]] = grad_values.data<T>()[i];
  });
}

}  // namespace tandem::kernels::reference
