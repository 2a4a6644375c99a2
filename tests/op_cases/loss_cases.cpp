// Op cases: softmax cross-entropy, and the negative log likelihood.
#include "tandem/autograd/functions/nll_loss.h"
#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/kernels/loss/nll_loss.h"
#include "tandem/kernels/loss/softmax_cross_entropy.h"
#include "tandem/kernels/loss/softmax_cross_entropy_implementations.h"
#include "tests/op_cases/op_case.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;
using autograd::Reduction;

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

std::vector<OpCall> nll_calls(const Shape& nchw, const std::vector<Reduction>& reductions) {
  std::vector<OpCall> result;
  const std::int64_t rows = nchw[0] * nchw[2] * nchw[3];
  for (const Reduction reduction : reductions) {
    if (reduction == Reduction::mean && rows == 0) continue;
    OpCall call;
    call.variant = reduction == Reduction::mean ? "mean" : reduction == Reduction::sum ? "sum" : "none";
    call.inputs = {{.shape = {rows, nchw[1]}}, {.shape = {rows}, .values = Values::labels, .classes = nchw[1]}};
    call.function = [=](const std::vector<Tensor>& in) { return autograd::nll_loss(in[0], in[1], reduction); };
    call.reference = [=](const std::vector<Tensor>& in) {
      const std::vector<double> values = in[0].to_vector<double>();
      std::vector<double> losses;
      double total = 0.0;
      for (const std::int64_t label : in[1].to_vector<std::int64_t>()) {
        const std::size_t row = losses.size() * static_cast<std::size_t>(nchw[1]);
        losses.push_back(-values[row + static_cast<std::size_t>(label)]);
        total += losses.back();
      }
      if (reduction == Reduction::none) return Tensor::from(losses, {rows});
      return Tensor::from(std::vector{reduction == Reduction::sum ? total : total / static_cast<double>(rows)}, {});
    };
    call.terms = static_cast<double>(rows);
    result.push_back(call);
  }
  return result;
}

std::function<void()> refuse_nll(const Shape& log_probabilities, const Tensor& labels) {
  return [=] { autograd::nll_loss(Tensor::zeros(log_probabilities), labels); };
}

const Tensor three_labels = Tensor::from(std::vector<std::int64_t>{1, 2, 3}, {3});

const std::vector<BadInput> nll_bad_inputs = {
    {"label too large", refuse_nll({3, 3}, three_labels),
     "nll_loss: label 2 of the batch is 3, outside of the 3 classes"},
    {"labels of another length", refuse_nll({2, 4}, three_labels),
     "nll_loss: log probabilities f32[2, 4] need labels i64[2], got i64[3]"},
    {"labels of another dtype", refuse_nll({3, 4}, Tensor::zeros({3})), "need labels i64[3], got f32[3]"},
    {"rank", refuse_nll({4}, three_labels), "nll_loss: needs floating log probabilities [N, classes], got f32[4]"},
    {"no classes", refuse_nll({3, 0}, three_labels), "nll_loss: needs floating log probabilities [N, classes]"},
    {"integers", [] { autograd::nll_loss(Tensor::zeros({3, 4}, {.dtype = DType::i32}), three_labels); },
     "nll_loss: needs floating log probabilities [N, classes], got i32[3, 4]"},
    {"no labels", refuse_nll({3, 4}, Tensor()), "nll_loss: needs log probabilities and labels, got f32[3, 4] and"},
    {"losses of another dtype",
     [] {
       kernels::nll_loss_forward(Tensor::zeros({3, 4}, {.dtype = DType::f64}), three_labels, Out(Tensor::zeros({3})));
     },
     "nll_loss: the losses of f64[3, 4] must be f64, got f32[3]"},
    {"gradients of another length",
     [] { kernels::nll_loss_backward(three_labels, Tensor::zeros({2}), Out(Tensor::zeros({3, 4}))); },
     "nll_loss_backward: log probabilities f32[3, 4] need floating losses [3], got f32[2]"}};

const RegisterOp nll_mean_case({.name = "nll_loss",
                                .calls = [](const Shape& nchw) { return nll_calls(nchw, {Reduction::mean}); },
                                .bad_inputs = nll_bad_inputs,
                                .exact_on_integers = false});
const RegisterOp nll_sums_case(
    {.name = "nll_loss, sum and none",
     .calls = [](const Shape& nchw) { return nll_calls(nchw, {Reduction::sum, Reduction::none}); },
     .bad_inputs = nll_bad_inputs});

}  // namespace
