// Newton-Schulz iteration.
#include "tandem/optim/newton_schulz.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/core/describe.h"
#include "tandem/core/error.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/elementwise/binary.h"
#include "tandem/kernels/elementwise/mul.h"
#include "tandem/kernels/elementwise/unary.h"
#include "tandem/kernels/gemm/grouped_gemm.h"
#include "tandem/kernels/reduce/sum_to.h"

#include <algorithm>
#include <cmath>

namespace tandem::optim {

namespace {

constexpr std::string_view kName = "newton_schulz";

Tensor empty_as(const Tensor& model, const Shape& shape) {
  return Tensor::empty(shape, {.dtype = model.dtype(), .device = model.device()});
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
  constexpr double kMost = 1000.0;  // products of larger ones leave f16
  require(std::ranges::all_of(options.coefficients, [](double value) { return std::abs(value) <= kMost; }),
          "{}: coefficients of Newton-Schulz must be from -{} to {}, got {}, {}, {}", who, kMost, kMost,
          options.coefficients[0], options.coefficients[1], options.coefficients[2]);
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
  const Tensor x = autograd::cast(divided_by_norm(given, options.eps), options.dtype.value_or(wide));
  const std::int64_t rows = x.size(-2), columns = x.size(-1), size = rows * columns;
  const Tensor last = newton_schulz_steps({x.view({size == 0 ? 0 : x.numel() / size, rows, columns})}, options).front();
  return autograd::cast(last.view(matrices.shape()), matrices.dtype());
}

std::vector<Tensor> newton_schulz_steps(std::vector<Tensor> x, const NewtonSchulzOptions& options) {
  check_newton_schulz(kName, options);
  for (const Tensor& each : x)
    require(each.defined() && each.rank() == 3 && each.is_dense(Layout::row_major),
            "{}: steps need dense matrices [n, R, C], got {}", kName, each);
  const MemoryTagScope scope(MemoryTag::workspace);
  const auto& [a, b, c] = options.coefficients;
  for (std::int64_t step = 0; step < options.steps; ++step) {
    // a X + (b A + c A A) X is (a I + b A + c A A) X, or, from the other side, X (a I + b A + c A A).
    std::vector<kernels::GroupedProduct> grams, factors, moved;
    for (const Tensor& each : x) {
      const bool is_tall = each.size(1) > each.size(2);
      const std::int64_t rank = std::min(each.size(1), each.size(2));
      const Tensor transposed = each.transpose(1, 2), gram = empty_as(each, {each.size(0), rank, rank});
      const Tensor factor = empty_as(gram, gram.shape()), next = empty_as(each, each.shape());
      grams.push_back({is_tall ? transposed : each, is_tall ? each : transposed, Out(gram)});
      factors.push_back({gram, gram, Out(factor), gram});
      moved.push_back({is_tall ? each : factor, is_tall ? factor : each, Out(next)});
    }
    kernels::grouped_gemm(grams);
    kernels::grouped_gemm(factors, {.product = c, .addend = b, .identity = a});
    kernels::grouped_gemm(moved);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = moved[i].c.tensor();
  }
  return x;
}

}  // namespace tandem::optim
