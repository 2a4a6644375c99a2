// Newton-Schulz iteration.
#include "tandem/optim/newton_schulz.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/core/describe.h"
#include "tandem/core/error.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/elementwise/add.h"
#include "tandem/kernels/elementwise/binary.h"
#include "tandem/kernels/elementwise/mul.h"
#include "tandem/kernels/elementwise/scale.h"
#include "tandem/kernels/elementwise/unary.h"
#include "tandem/kernels/gemm/batched_gemm.h"
#include "tandem/kernels/reduce/sum_to.h"

#include <algorithm>
#include <cmath>

namespace tandem::optim {

namespace {

constexpr std::string_view kName = "newton_schulz";

Tensor empty_as(const Tensor& model, const Shape& shape) {
  return Tensor::empty(shape, {.dtype = model.dtype(), .device = model.device()});
}

Tensor product(const Tensor& a, const Tensor& b) {
  Shape shape = a.shape();
  shape[-1] = b.size(-1);
  const Tensor c = empty_as(a, shape);
  kernels::batched_gemm(a, b, Out(c));
  return c;
}

/// y <- factor x + y, and x becomes factor x.
void add_scaled(const Tensor& x, double factor, const Tensor& y) {
  kernels::scale(x, factor, Out(x));
  kernels::add(x, y, Out(y));
}

/// Each matrix divided by its norm plus eps. Not in place, and dense.
Tensor divided_by_norm(const Tensor& matrices, double eps) {
  Shape of_norms = matrices.shape();
  of_norms[-1] = of_norms[-2] = 1;
  const Tensor result = empty_as(matrices, matrices.shape()), norms = empty_as(matrices, of_norms);
  kernels::mul(matrices, matrices, Out(result));
  kernels::sum_to(result, Out(norms));
  kernels::unary_forward(kName, kernels::Unary::sqrt, norms, {}, Out(norms));
  kernels::unary_forward(kName, kernels::Unary::add_number, norms, {.a = eps}, Out(norms));
  kernels::binary_forward(kName, kernels::Binary::div, matrices, norms.expand(matrices.shape()), Out(result));
  return result;
}

}  // namespace

void check_newton_schulz(std::string_view who, const NewtonSchulzOptions& options) {
  require(options.steps >= 1, "{}: steps of Newton-Schulz must be 1 or more, got {}", who, options.steps);
  require(std::ranges::all_of(options.coefficients, [](double value) { return std::isfinite(value); }),
          "{}: coefficients of Newton-Schulz must be finite, got {}, {}, {}", who, options.coefficients[0],
          options.coefficients[1], options.coefficients[2]);
  require(std::isfinite(options.eps) && options.eps > 0.0,
          "{}: eps of Newton-Schulz must be a finite number above 0, got {}", who, options.eps);
  require(!options.dtype || is_floating(*options.dtype),
          "{}: the dtype of Newton-Schulz must be f64, f32, f16 or bf16, got {}", who,
          name_of(options.dtype.value_or(DType::f32)));
}

Tensor newton_schulz(const Tensor& matrices, const NewtonSchulzOptions& options) {
  check_newton_schulz(kName, options);
  require(matrices.defined() && is_floating(matrices.dtype()) && matrices.rank() >= 2,
          "{}: needs matrices [..., R, C] of a floating dtype, got {}", kName, matrices);
  const autograd::NoGrad no_grad;
  const MemoryTagScope scope(MemoryTag::workspace);
  const DType wide = matrices.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor given = autograd::cast(matrices.detach(), wide);
  Tensor x = autograd::cast(divided_by_norm(given, options.eps), options.dtype.value_or(wide));
  const auto& [a, b, c] = options.coefficients;
  const bool is_tall = x.size(-2) > x.size(-1);
  for (std::int64_t step = 0; step < options.steps; ++step) {
    const Tensor transposed = x.transpose(-2, -1);
    const Tensor gram = is_tall ? product(transposed, x) : product(x, transposed);
    const Tensor factor = product(gram, gram);
    kernels::scale(factor, c, Out(factor));
    add_scaled(gram, b, factor);
    const Tensor moved = is_tall ? product(x, factor) : product(factor, x);
    add_scaled(x, a, moved);
    x = moved;
  }
  return autograd::cast(x, matrices.dtype());
}

}  // namespace tandem::optim
