// Op cases: softmax and its logarithm along each dimension, against formulas in f64.
#include "tandem/autograd/functions/softmax.h"
#include "tandem/kernels/activation/softmax.h"
#include "tests/op_cases/op_case.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;
using kernels::SoftmaxResult;

namespace {

/// Calls visit(offset of the first element, step) for each run along a dimension of a row-major tensor.
template <typename Visit>
void for_each_run(const Shape& shape, int dim, Visit&& visit) {
  std::int64_t step = 1;
  for (int inner = dim + 1; inner < shape.rank(); ++inner) step *= shape[inner];
  const std::int64_t length = shape[dim], runs = length == 0 ? 0 : element_count(shape) / length;
  for (std::int64_t run = 0; run < runs; ++run)
    visit(static_cast<std::size_t>(run / step * step * length + run % step), static_cast<std::size_t>(step));
}

Tensor reference(bool logarithm, int dim, const Tensor& x) {
  std::vector<double> values = x.to_vector<double>();
  const auto length = static_cast<std::size_t>(x.size(dim));
  for_each_run(x.shape(), dim, [&](std::size_t first, std::size_t step) {
    double sum = 0.0;
    for (std::size_t i = 0; i < length; ++i) sum += std::exp(values[first + i * step]);
    for (std::size_t i = 0; i < length; ++i) {
      double& value = values[first + i * step];
      value = logarithm ? value - std::log(sum) : std::exp(value) / sum;
    }
  });
  return Tensor::from(values, x.shape());
}

/// What roundings are relative to: exponents of up to 2 max|x|, and a logarithm; no probability is above 1.
Tensor magnitude(int dim, const Tensor& absolute_x) {
  double largest = 0.0;
  for (const double value : absolute_x.to_vector<double>()) largest = std::max(largest, value);
  const auto length = static_cast<double>(std::max<std::int64_t>(1, absolute_x.size(dim)));
  return Tensor::full(absolute_x.shape(), 1.0 + 2.0 * largest + std::log(length), {.dtype = DType::f64});
}

using Function = Tensor (*)(const Tensor& x, int dim);

std::vector<OpCall> calls(Function function, bool logarithm, const Shape& nchw) {
  std::vector<OpCall> result;
  for (int dim = 0; dim < 4; ++dim) {
    OpCall call;
    call.variant = fmt::format("dim {}", dim);
    call.inputs = {{.shape = nchw}};
    call.function = [=](const std::vector<Tensor>& in) { return function(in[0], dim % 2 == 0 ? dim : dim - 4); };
    call.reference = [=](const std::vector<Tensor>& in) { return reference(logarithm, dim, in[0]); };
    call.magnitude = [=](const std::vector<Tensor>& in) { return magnitude(dim, in[0]); };
    call.terms = 8.0 + static_cast<double>(nchw[dim]);
    result.push_back(call);
  }
  return result;
}

const Tensor matrix = Tensor::zeros({2, 3}), wide = Tensor::zeros({2, 3}, {.dtype = DType::f64});

std::vector<BadInput> bad_inputs(const std::string& name, Function function) {
  return {
      {"a dimension too many", [=] { function(matrix, 2); },
       name + ": dimension 2 is out of range for f32[2, 3]; give one from -2 to 1"},
      {"a dimension too few", [=] { function(matrix, -3); }, name + ": dimension -3 is out of range"},
      {"a number", [=] { function(Tensor::zeros({}), 0); },
       name + ": needs a floating tensor of one dimension or more, got f32[]"},
      {"integers", [=] { function(Tensor::zeros({2}, {.dtype = DType::i64}), 0); },
       name + ": needs a floating tensor of one dimension or more, got i64[2]"},
      {"nothing", [=] { function(Tensor(), 0); }, name + ": needs a floating tensor"},
      {"an output of another dtype", [] { kernels::softmax_forward(SoftmaxResult::logarithms, matrix, Out(wide)); },
       "softmax_forward: the output for f32[2, 3] must be f32, got f64[2, 3]"},
      {"an output with gaps",
       [] { kernels::softmax_forward(SoftmaxResult::logarithms, matrix, Out(Tensor::zeros({3, 2}).transpose(0, 1))); },
       "softmax_forward: the output must be floating, dense row-major and of one shape [R, C], got f32[2, 3]"},
      {"a gradient of another dtype",
       [] { kernels::softmax_backward(SoftmaxResult::logarithms, matrix, wide, Out(matrix)); },
       "softmax_backward: the gradient f32[2, 3] needs an output and its gradient of f32, got f32[2, 3] and f64"},
      {"a gradient of another shape",
       [] { kernels::softmax_backward(SoftmaxResult::logarithms, matrix, Tensor::zeros({3, 2}), Out(matrix)); },
       "softmax_backward: its gradient must be floating, dense row-major and of one shape [R, C], got f32[3, 2]"}};
}

const RegisterOp softmax_case({.name = "softmax",
                               .calls = [](const Shape& nchw) { return calls(autograd::softmax, false, nchw); },
                               .bad_inputs = bad_inputs("softmax", autograd::softmax),
                               .exact_on_integers = false});

const RegisterOp log_softmax_case({.name = "log_softmax",
                                   .calls = [](const Shape& nchw) { return calls(autograd::log_softmax, true, nchw); },
                                   .bad_inputs = bad_inputs("log_softmax", autograd::log_softmax),
                                   .exact_on_integers = false});

}  // namespace
