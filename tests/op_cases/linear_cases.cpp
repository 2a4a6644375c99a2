// Op cases: linear and linear_relu.
#include "tandem/autograd/functions/linear.h"
#include "tandem/kernels/gemm/linear.h"
#include "tandem/kernels/gemm/linear_implementations.h"
#include "tests/op_cases/op_case.h"

using namespace tandem;
using namespace tandem::test;

namespace {

using Function = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, kernels::GemmImpl);
constexpr kernels::GemmImpl kAuto = kernels::GemmImpl::automatic;

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
    return result;
  };
  const auto refuse = [function](const Shape& x, const Shape& w, const Shape& b, DType dtype = DType::f32) {
    return [=] { function(Tensor::zeros(x), Tensor::zeros(w, {.dtype = dtype}), Tensor::zeros(b), kAuto); };
  };
  return {.name = name,
          .calls = calls,
          .bad_inputs = {{"features", refuse({2, 3}, {4, 5}, {4}), "got f32[2, 3] and f32[4, 5]"},
                         {"rank", refuse({2, 3, 1}, {4, 3}, {4}), name + ": needs rows [N, I]"},
                         {"bias", refuse({2, 3}, {4, 3}, {3}), "bias should have shape [4]"},
                         {"dtypes", refuse({2, 3}, {4, 3}, {4}, DType::f64), "weight should be f32"}}};
}

const RegisterOp linear_case(case_of("linear", autograd::linear, false));
const RegisterOp linear_relu_case(case_of("linear_relu", autograd::linear_relu, true));

}  // namespace
