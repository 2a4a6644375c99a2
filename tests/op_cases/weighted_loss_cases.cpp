// Op cases: losses of labels that do not all count alike: class weights, ignored labels.
#include "tandem/autograd/functions/nll_loss.h"
#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/variable.h"
#include "tandem/kernels/loss/nll_loss.h"
#include "tests/op_cases/op_case.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;
using autograd::CrossEntropyOptions;
using autograd::Reduction;

namespace {

/// What plain loops make of losses of rows and of what these count.
Tensor reduced(const std::vector<double>& losses, const std::vector<double>& counts, Reduction reduction) {
  if (reduction == Reduction::none) return Tensor::from(losses, {static_cast<std::int64_t>(losses.size())});
  double total = 0.0, count = 0.0;
  for (std::size_t n = 0; n < losses.size(); ++n) {
    total += losses[n];
    count += counts[n];
  }
  return Tensor::from(std::vector{reduction == Reduction::sum ? total : total / count}, {});
}

/// Of log probabilities, labels and class weights: (1 - s) w -log p and s times the mean over classes of w -log p.
Tensor plain_loss(const std::vector<Tensor>& in, const std::vector<double>& log_p, const CrossEntropyOptions& options) {
  const std::vector<double> weights = in[2].to_vector<double>();
  const std::size_t classes = weights.size();
  std::vector<double> losses, counts;
  for (const std::int64_t label : in[1].to_vector<std::int64_t>()) {
    const double* const row = log_p.data() + losses.size() * classes;
    const bool counted = label != options.ignore_index;
    double smooth = 0.0;
    for (std::size_t c = 0; c < classes; ++c) smooth -= weights[c] * row[c] / static_cast<double>(classes);
    const double weight = counted ? weights[static_cast<std::size_t>(label)] : 0.0;
    const double own = counted ? -weight * row[label] : 0.0;
    losses.push_back((1.0 - options.label_smoothing) * own + (counted ? options.label_smoothing * smooth : 0.0));
    counts.push_back(weight);
  }
  return reduced(losses, counts, options.reduction);
}

std::vector<double> log_softmax_of(const Tensor& logits) {
  std::vector<double> values = logits.to_vector<double>();
  const auto classes = static_cast<std::size_t>(logits.size(1));
  for (std::size_t row = 0; row < values.size(); row += classes) {
    double sum = 0.0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(values[row + c]);
    for (std::size_t c = 0; c < classes; ++c) values[row + c] -= std::log(sum);
  }
  return values;
}

std::vector<OpInput> inputs_of(std::int64_t rows, std::int64_t classes) {
  return {{.shape = {rows, classes}},
          {.shape = {rows}, .values = Values::labels, .classes = classes},
          {.shape = {classes}, .values = Values::positive, .differentiable = false}};
}

std::vector<OpCall> nll_calls(const Shape& nchw, const std::vector<CrossEntropyOptions>& all) {
  std::vector<OpCall> result;
  const std::int64_t rows = nchw[0] * nchw[2] * nchw[3];
  for (const CrossEntropyOptions& options : all) {
    if (options.reduction == Reduction::mean && rows == 0) continue;
    OpCall call;
    call.variant = options.reduction == Reduction::mean ? "mean" : options.reduction == Reduction::sum ? "sum" : "none";
    call.inputs = inputs_of(rows, nchw[1]);
    call.function = [=](const std::vector<Tensor>& in) {
      return autograd::nll_loss(in[0], in[1], options.reduction,
                                {.of_classes = in[2], .ignore_index = options.ignore_index});
    };
    call.reference = [=](const std::vector<Tensor>& in) { return plain_loss(in, in[0].to_vector<double>(), options); };
    call.terms = 2.0 + static_cast<double>(rows);
    result.push_back(call);
  }
  return result;
}

std::vector<OpCall> cross_entropy_calls(const Shape& nchw) {
  std::vector<OpCall> result;
  const std::int64_t rows = nchw[0] * nchw[2] * nchw[3];
  if (rows == 0) return result;
  for (CrossEntropyOptions options :
       {CrossEntropyOptions{}, CrossEntropyOptions{.label_smoothing = 0.1},
        CrossEntropyOptions{.ignore_index = 1, .label_smoothing = 0.3, .reduction = Reduction::sum},
        CrossEntropyOptions{.ignore_index = 0, .reduction = Reduction::none}}) {
    OpCall call;
    call.variant = fmt::format("smoothing {}, ignoring {}", options.label_smoothing, options.ignore_index.value_or(-1));
    call.inputs = inputs_of(rows, nchw[1]);
    call.function = [=](const std::vector<Tensor>& in) {
      CrossEntropyOptions own = options;
      own.weight = in[2];
      return autograd::softmax_cross_entropy(in[0], in[1], own);
    };
    call.reference = [=](const std::vector<Tensor>& in) { return plain_loss(in, log_softmax_of(in[0]), options); };
    // A loss is at most log(classes) + 2 max|logit|, and counts at most as the largest weight does; the mean divides by
    // no less than the smallest.
    call.magnitude = [=](const std::vector<Tensor>& in) {
      double largest = 0.0, heaviest = 0.0, lightest = HUGE_VAL;
      for (const double value : absolute(in)[0].to_vector<double>()) largest = std::max(largest, value);
      for (const double weight : in[2].to_vector<double>()) {
        heaviest = std::max(heaviest, weight);
        lightest = std::min(lightest, weight);
      }
      const double row = 1.0 + std::log(static_cast<double>(in[0].size(1))) + 2.0 * largest;
      const double share = options.reduction == Reduction::mean  ? 1.0 / lightest
                           : options.reduction == Reduction::sum ? static_cast<double>(rows)
                                                                 : 1.0;
      const Shape shape = options.reduction == Reduction::none ? Shape{rows} : Shape{};
      return Tensor::full(shape, heaviest * share * row, {.dtype = DType::f64});
    };
    call.terms = 16.0;
    result.push_back(call);
  }
  return result;
}

const Tensor rows = Tensor::zeros({3, 4}), labels = Tensor::from(std::vector<std::int64_t>{1, -100, 3}, {3});

std::function<void()> weigh(const Tensor& weight, std::optional<std::int64_t> ignored = -100) {
  return [=] { autograd::nll_loss(rows, labels, Reduction::mean, {.of_classes = weight, .ignore_index = ignored}); };
}

std::function<void()> cross(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& options) {
  return [=] { autograd::softmax_cross_entropy(logits, targets, options); };
}

const std::vector<BadInput> bad_weights = {
    {"too few weights", weigh(Tensor::zeros({3})),
     "nll_loss: the weights of the classes of f32[3, 4] must be floating and of shape [4], got f32[3]"},
    {"weights of integers", weigh(Tensor::zeros({4}, {.dtype = DType::i64})), "must be floating and of shape [4]"},
    {"weights with a gradient", weigh(autograd::set_requires_grad(Tensor::zeros({4}))), "give detach()"},
    {"a label that is not ignored", weigh({}, 0), "nll_loss: label 1 of the batch is -100, outside of the 4 classes"},
    {"row weights of another dtype",
     [] {
       kernels::nll_loss_forward(rows, labels, Out(Tensor::zeros({3})), {.ignore_index = -100},
                                 Out(Tensor::zeros({3}, {.dtype = DType::f64})));
     },
     "nll_loss: the weights of rows must be f32[3] on cpu, got f64[3]"}};

const RegisterOp nll_mean_case({.name = "nll_loss with weights",
                                .calls = [](const Shape& nchw) { return nll_calls(nchw, {CrossEntropyOptions{}}); },
                                .bad_inputs = bad_weights,
                                .exact_on_integers = false});
const RegisterOp nll_sums_case({.name = "nll_loss with weights and ignored labels, sum and none",
                                .calls =
                                    [](const Shape& nchw) {
                                      return nll_calls(nchw, {{.ignore_index = 0, .reduction = Reduction::sum},
                                                              {.ignore_index = 1, .reduction = Reduction::none}});
                                    },
                                .bad_inputs = bad_weights});
const RegisterOp cross_entropy_case(
    {.name = "softmax_cross_entropy with weights",
     .calls = cross_entropy_calls,
     .bad_inputs = {{"too few weights", cross(rows, labels, {.weight = Tensor::zeros({3}), .ignore_index = -100}),
                     "must be floating and of shape [4]"},
                    {"a label that is not ignored", cross(rows, labels, {.ignore_index = 7}),
                     "label 1 of the batch is -100, outside of the 4 classes"},
                    {"class probabilities", cross(rows, rows, {.reduction = Reduction::sum}),
                     "weights, ignore_index and reductions are for labels i64[3], got f32[3, 4]"},
                    {"integers", cross(Tensor::zeros({3, 4}, {.dtype = DType::i32}), labels, {.ignore_index = -100}),
                     "softmax_cross_entropy: needs floating logits [N, classes], got i32[3, 4]"},
                    {"smoothing", cross(rows, labels, {.ignore_index = -100, .label_smoothing = 2.0}),
                     "label smoothing must lie in [0, 1], got 2"}},
     .exact_on_integers = false});

}  // namespace
