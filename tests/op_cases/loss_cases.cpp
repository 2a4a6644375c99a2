// Op cases: softmax cross-entropy.
#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/kernels/loss/softmax_cross_entropy.h"
#include "tandem/kernels/loss/softmax_cross_entropy_implementations.h"
#include "tests/op_cases/op_case.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

std::vector<OpCall> calls(const Shape& nchw) {
  std::vector<OpCall> result;
  if (nchw[0] == 0) return result;  // the mean over no rows is NaN: tests/kernels/test_loss.cpp
  for (const double smoothing : {0.0, 0.1, 1.0}) {
    OpCall call;
    call.variant = fmt::format("smoothing {}", smoothing);
    const std::int64_t rows = nchw[0] * nchw[2] * nchw[3];
    call.inputs = {{.shape = {rows, nchw[1]}}, {.shape = {rows}, .values = Values::labels, .classes = nchw[1]}};
    call.function = [=](const std::vector<Tensor>& in) {
      return autograd::softmax_cross_entropy(in[0], in[1], smoothing);
    };
    call.reference = [=](const std::vector<Tensor>& in) {
      const Tensor loss = Tensor::empty({}, {.dtype = DType::f64});
      kernels::reference::softmax_cross_entropy_forward(in[0], in[1], smoothing, Out(loss), {});
      return loss;
    };
    // A row's loss is at most log(classes) + 2 max|logit|, and so is every number on the way to it.
    call.magnitude = [](const std::vector<Tensor>& in) {
      double largest = 0.0;
      for (const double value : absolute(in)[0].to_vector<double>()) largest = std::max(largest, value);
      return Tensor::full({}, 1.0 + std::log(static_cast<double>(in[0].size(1))) + 2.0 * largest,
                          {.dtype = DType::f64});
    };
    call.terms = 8.0;
    result.push_back(call);
  }
  return result;
}

std::function<void()> refuse(const Shape& logits, const std::vector<std::int64_t>& labels, double smoothing = 0.0) {
  return [=] {
    autograd::softmax_cross_entropy(Tensor::zeros(logits),
                                    Tensor::from(labels, {static_cast<std::int64_t>(labels.size())}), smoothing);
  };
}

const RegisterOp softmax_cross_entropy_case(
    {.name = "softmax_cross_entropy",
     .calls = calls,
     .bad_inputs =
         {{"label too large", refuse({3, 10}, {1, 10, 2}), "label 1 of the batch is 10, outside of the 10 classes"},
          {"label below 0", refuse({3, 10}, {1, 2, -1}), "label 2 of the batch is -1, outside of the 10 classes"},
          {"labels of another length", refuse({3, 10}, {1, 2}), "logits f32[3, 10] need labels i64[3], got i64[2]"},
          {"rank", refuse({3, 10, 1}, {1, 2, 3}), "needs floating logits [N, classes]"},
          {"no classes", refuse({1, 0}, {0}), "needs floating logits [N, classes]"},
          {"labels of another dtype",
           [] { autograd::softmax_cross_entropy(Tensor::zeros({3, 4}), Tensor::zeros({3})); },
           "need labels i64[3], got f32[3]"},
          {"smoothing", refuse({3, 10}, {1, 2, 3}, 1.5), "label smoothing must lie in [0, 1], got 1.5"}},
     .exact_on_integers = false});

}  // namespace
