// Op cases: dropout.
#include "tandem/autograd/functions/dropout.h"
#include "tandem/kernels/dropout/dropout.h"
#include "tandem/kernels/dropout/dropout_implementations.h"
#include "tests/op_cases/op_case.h"

using namespace tandem;
using namespace tandem::test;

namespace {

OpCase case_of(const std::string& name, const std::vector<double>& probabilities, bool exact) {
  const auto calls = [probabilities](const Shape& nchw) {
    std::vector<OpCall> result;
    for (const double p : probabilities) {
      for (const Shape& shape : {nchw, Shape{nchw[0], nchw[1] * nchw[2] * nchw[3]}}) {
        const RandomKey key{.seed = 17, .stream = RandomStream::dropout, .step = 3};
        OpCall call;
        call.variant = fmt::format("p {}, rank {}", p, shape.rank());
        call.inputs = {{.shape = shape}};
        call.function = [=](const std::vector<Tensor>& in) { return autograd::dropout(in[0], p, key); };
        call.reference = [=](const std::vector<Tensor>& in) {
          const Tensor y = empty_like(in[0]);
          kernels::reference::dropout_forward(in[0], p, key, Out(y));
          return y;
        };
        call.terms = 1.0;
        result.push_back(call);
      }
    }
    return result;
  };
  const auto refuse = [](double p, DType dtype) {
    return [=] { autograd::dropout(Tensor::zeros({2, 3}, {.dtype = dtype}), p, {}); };
  };
  return {.name = name,
          .calls = calls,
          .bad_inputs = {{"p below 0", refuse(-0.1, DType::f32), "the probability must lie in [0, 1], got -0.1"},
                         {"p above 1", refuse(1.5, DType::f32), "the probability must lie in [0, 1], got 1.5"},
                         {"integers", refuse(0.5, DType::i32), "one floating dtype, got i32[2, 3]"},
                         {"other shape",
                          [] { kernels::dropout_forward(Tensor::zeros({2, 3}), 0.5, {}, Out(Tensor::zeros({3, 2}))); },
                          "of one shape"}},
          .exact_on_integers = exact};
}

const RegisterOp dropout_case(case_of("dropout", {0.0, 0.5, 1.0}, true));
const RegisterOp dropout_rounded_case(case_of("dropout, any probability", {0.1, 0.3}, false));

}  // namespace
