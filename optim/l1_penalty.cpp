// An L1 penalty on parameters, by its gradient.
#include "tandem/optim/l1_penalty.h"

#include "tandem/core/out.h"
#include "tandem/core/profiler.h"
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/elementwise/add.h"
#include "tandem/kernels/elementwise/unary.h"

#include <cmath>

namespace tandem::optim {

void add_l1_gradient(const std::vector<Tensor>& parameters, double weight) {
  require(std::isfinite(weight) && weight >= 0.0,
          "add_l1_gradient: the weight must be a finite number and not negative, got {}", weight);
  if (weight == 0.0) return;
  const ProfileRange range("L1 penalty");
  for (const Tensor& parameter : parameters) {
    const Tensor gradient = autograd::grad(parameter);
    if (!gradient.defined()) continue;
    Tensor value = parameter.detach();
    if (value.dtype() != gradient.dtype()) {  // a half parameter, whose gradient is exchanged in f32
      const Tensor widened = empty_like(gradient);
      kernels::cast(value, Out(widened));
      value = widened;
    }
    const Tensor slope = Tensor::full({}, weight, gradient.options()).expand(gradient.shape());
    const Tensor penalty = empty_like(gradient);
    kernels::unary_backward("add_l1_gradient", kernels::Unary::abs, value, slope, {}, Out(penalty));
    kernels::add(gradient, penalty, Out(gradient));
  }
}

}  // namespace tandem::optim
