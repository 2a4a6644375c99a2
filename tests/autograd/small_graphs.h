// Leaves of a few numbers, and a function of a user's own over them.
#pragma once

#include "tandem/autograd/functions.h"
#include "tandem/autograd/record.h"
#include "tandem/autograd/variable.h"
#include "tandem/kernels/elementwise/mul.h"

#include <string>
#include <vector>

namespace tandem::test {

using namespace autograd;

inline Tensor leaf(const std::vector<double>& values) {
  const Tensor x = Tensor::from(values, {static_cast<std::int64_t>(values.size())});
  return set_requires_grad(x);
}

inline std::vector<double> grad_of(const Tensor& x) { return grad(x).to_vector<double>(); }

using Values = std::vector<double>;

/// A custom function as a user would write it, noting when its backward runs.
inline Tensor square(const Tensor& x, std::vector<std::string>* log = nullptr, const std::string& name = "square") {
  const Tensor y = empty_like(x);
  kernels::mul(x, x, Out(y));
  return record(name, {x}, y, [saved = SavedTensor(x), log, name](const BackwardContext& context) {
    if (log != nullptr) log->push_back(name);
    const Tensor result = empty_like(context.grad_output());
    kernels::mul(saved.get(), context.grad_output(), Out(result));
    return std::vector<Tensor>{scale(result, 2.0)};
  });
}

}  // namespace tandem::test
