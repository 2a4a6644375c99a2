// Op cases: activations.
#include "tandem/autograd/functions/activation.h"
#include "tandem/kernels/activation/gelu.h"
#include "tandem/kernels/activation/gelu_implementations.h"
#include "tandem/kernels/activation/relu.h"
#include "tandem/kernels/activation/relu_implementations.h"
#include "tandem/kernels/activation/silu.h"
#include "tandem/kernels/activation/silu_implementations.h"
#include "tests/op_cases/op_case.h"

using namespace tandem;
using namespace tandem::test;

namespace {

using Kernel = void (*)(const Tensor& x, const Out& y);

struct Activation {
  std::string name;
  Tensor (*function)(const Tensor&);
  Kernel kernel;
  Kernel reference;
  Values values;
  double terms;  // roundings and polynomial error, in units of one rounding
  bool exact;
};

OpCase case_of(const Activation& activation) {
  const auto calls = [activation](const Shape& nchw) {
    OpCall call;
    call.inputs = {{.shape = nchw, .values = activation.values}};
    call.function = [activation](const std::vector<Tensor>& in) { return activation.function(in[0]); };
    call.reference = [activation](const std::vector<Tensor>& in) {
      const Tensor y = empty_like(in[0]);
      activation.reference(in[0], Out(y));
      return y;
    };
    call.terms = activation.terms;
    // The result is x times a number in [0, 1] that is known to within a few roundings of 1.
    call.magnitude = [](const std::vector<Tensor>& in) { return absolute(in).front(); };
    return std::vector<OpCall>{call};
  };
  const Kernel kernel = activation.kernel;
  const auto refuse = [kernel](const Tensor& x, const Tensor& y) { return [=] { kernel(x, Out(y)); }; };
  const Tensor image = Tensor::zeros({1, 2, 3, 4});
  return {
      .name = activation.name,
      .calls = calls,
      .bad_inputs =
          {{"integers", refuse(Tensor::zeros({2}, {.dtype = DType::i32}), Tensor::zeros({2}, {.dtype = DType::i32})),
            activation.name + "_forward: needs a floating dtype"},
           {"other shape", refuse(image, Tensor::zeros({2})), activation.name + "_forward: input f32[1, 2, 3, 4]"},
           {"other dtype", refuse(image, Tensor::zeros({1, 2, 3, 4}, {.dtype = DType::f16})),
            activation.name + "_forward: input f32[1, 2, 3, 4] on cpu does not fit output f16"},
           {"output with gaps", refuse(Tensor::zeros({2}), Tensor::zeros({4}).narrow(0, 0, 2, 2)), "must be dense"},
           {"undefined", refuse(Tensor(), image), "undefined tensor"}},
      .exact_on_integers = activation.exact};
}

const RegisterOp relu_case(case_of({"relu", autograd::relu, kernels::relu_forward, kernels::reference::relu_forward,
                                    Values::away_from_zero, 0.0, true}));
const RegisterOp gelu_case(case_of({"gelu", autograd::gelu, kernels::gelu_forward, kernels::reference::gelu_forward,
                                    Values::normal, 8.0, false}));
const RegisterOp silu_case(case_of({"silu", autograd::silu, kernels::silu_forward, kernels::reference::silu_forward,
                                    Values::normal, 8.0, false}));

}  // namespace
