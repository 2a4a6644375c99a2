// Op cases: linear and linear_relu.
#include "tandem/autograd/functions/linear.h"
#include "tandem/kernels/gemm/linear.h"
#include "tandem/kernels/gemm/linear_implementations.h"
#include "tests/op_cases/op_case.h"

using namespace tandem;
using namespace tandem::test;

namespace {

using Function = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, kernels::GemmImpl);
const Tensor kWeight = Tensor::zeros({4, 3});
constexpr kernels::GemmImpl kAuto = kernels::GemmImpl::automatic;

/// An input of any rank: its last dimension are the features.
OpCall over_last_dimension(Function function, const Shape& shape, bool relu) {
  constexpr std::int64_t kOutputs = 5;
  OpCall call;
  call.variant = fmt::format("input {}", to_string(shape));
  call.inputs = {{.shape = shape}, {.shape = {kOutputs, shape[-1]}}, {.shape = {kOutputs}}};
  call.function = [=](const std::vector<Tensor>& in) { return function(in[0], in[1], in[2], kAuto); };
  call.reference = [=](const std::vector<Tensor>& in) {
    std::int64_t rows = 1;
    Shape y_shape = shape;
    y_shape[-1] = kOutputs;
    for (int dim = 0; dim + 1 < shape.rank(); ++dim) rows *= shape[dim];
    const Tensor y = Tensor::empty({rows, kOutputs}, in[0].options());
    const Tensor x = in[0].contiguous().view({rows, shape[-1]});
    kernels::reference::linear_forward(x, in[1].contiguous(), in[2].contiguous(), relu, Out(y));
    return y.view(y_shape);
  };
  const std::int64_t rows = shape.rank() == 4 ? shape[0] * shape[1] * shape[2] : 1;
  call.terms = static_cast<double>(shape[-1] + rows + kOutputs);
  return call;
}

OpCase case_of(const std::string& name, Function function, bool relu) {
  const auto calls = [function, relu](const Shape& nchw) {
    std::vector<OpCall> result;
    const std::int64_t inputs = nchw[1] * nchw[2] * nchw[3];
    for (const std::int64_t outputs : {1, 10, 17}) {
      for (const bool bias : {true, false}) {
        OpCall call;
        call.variant = fmt::format("{} outputs{}", outputs, bias ? "" : ", no bias");
        call.inputs = {{.shape = {nchw[0], inputs}}, {.shape = {outputs, inputs}}};
        if (bias) call.inputs.push_back({.shape = {outputs}});
        call.function = [=](const std::vector<Tensor>& in) {
          return function(in[0], in[1], bias ? in[2] : Tensor(), kAuto);
        };
        call.reference = [=](const std::vector<Tensor>& in) {
          const Tensor y = Tensor::empty({in[0].size(0), in[1].size(0)}, in[0].options());
          const Tensor x = in[0].contiguous(), weight = in[1].contiguous();
          kernels::reference::linear_forward(x, weight, bias ? in[2].contiguous() : Tensor(), relu, Out(y));
          return y;
        };
        call.terms = static_cast<double>(inputs + nchw[0] + outputs);
        result.push_back(call);
      }
    }
    result.push_back(over_last_dimension(function, nchw, relu));
    result.push_back(over_last_dimension(function, {nchw[3]}, relu));
    return result;
  };
  const auto refuse = [function](const Shape& x, const Shape& w, const Shape& b, DType dtype = DType::f32) {
    return [=] { function(Tensor::zeros(x), Tensor::zeros(w, {.dtype = dtype}), Tensor::zeros(b), kAuto); };
  };
  return {.name = name,
          .calls = calls,
          .bad_inputs = {
              {"features", refuse({2, 3}, {4, 5}, {4}), "got f32[2, 3] and f32[4, 5]"},
              {"rank", refuse({2, 3, 1}, {4, 3}, {4}), name + ": needs an input [..., I]"},
              {"bias", refuse({2, 3}, {4, 3}, {3}), "the bias of a weight f32[4, 3] should be f32[4]"},
              {"dtypes", refuse({2, 3}, {4, 3}, {4}, DType::f64), "cast the input to f64"},
              {"integers", [function] { function(Tensor::zeros({2, 3}, {.dtype = DType::i64}), kWeight, {}, kAuto); },
               name + ": needs a floating input and weight, got i64[2, 3] and f32[4, 3]; use cast"},
              {"undefined", [function] { function(Tensor(), kWeight, {}, kAuto); },
               name + ": needs a defined input and weight"}}};
}

const RegisterOp linear_case(case_of("linear", autograd::linear, false));
const RegisterOp linear_relu_case(case_of("linear_relu", autograd::linear_relu, true));

}  // namespace
