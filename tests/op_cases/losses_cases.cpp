// Op cases: losses of each element, against formulas in f64.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/functions/reduction.h"
#include "tests/op_cases/op_case.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;
using autograd::Reduction;

namespace {

using Loss = Tensor (*)(const std::vector<Tensor>& in, Reduction reduction);
/// Of an input, a target and, where there is one, its weight.
using Formula = double (*)(double input, double target, double weight);

struct Row {
  std::string name;
  Loss loss;
  Formula formula, size;
  Values input = Values::normal, target = Values::normal;
  bool weighted = false, exact = false;
};

Tensor computed(Formula formula, Reduction reduction, const std::vector<Tensor>& in) {
  const Shape shape = in[0].shape();
  std::vector<double> losses = in[0].to_vector<double>();
  const std::vector<double> targets = in[1].to_vector<double>();
  const std::vector<double> weights = in.size() > 2 ? in[2].expand(shape).to_vector<double>() : std::vector<double>();
  double total = 0.0;
  for (std::size_t i = 0; i < losses.size(); ++i)
    total += losses[i] = formula(losses[i], targets[i], weights.empty() ? 1.0 : weights[i]);
  if (reduction == Reduction::none) return Tensor::from(losses, shape);
  const double count = reduction == Reduction::mean ? static_cast<double>(losses.size()) : 1.0;
  return Tensor::from(std::vector{total / count}, {});
}

std::vector<OpCall> calls_of(const Row& row, const Shape& nchw, const std::vector<Reduction>& reductions) {
  std::vector<OpCall> calls;
  for (const Reduction reduction : reductions) {
    if (reduction == Reduction::mean && element_count(nchw) == 0) continue;  // NaN: test_losses.cpp
    OpCall call;
    call.variant = reduction == Reduction::mean ? "mean" : reduction == Reduction::sum ? "sum" : "none";
    call.inputs = {{.shape = nchw, .values = row.input}, {.shape = nchw, .values = row.target}};
    if (row.weighted) call.inputs.push_back({.shape = {nchw[3]}, .values = Values::positive});
    call.function = [=](const std::vector<Tensor>& in) { return row.loss(in, reduction); };
    call.reference = [=](const std::vector<Tensor>& in) { return computed(row.formula, reduction, in); };
    call.magnitude = [=](const std::vector<Tensor>& in) { return computed(row.size, reduction, absolute(in)); };
    call.terms = 16.0 + static_cast<double>(element_count(nchw));
    calls.push_back(call);
  }
  return calls;
}

/// log(1 + exp(x))
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

std::vector<BadInput> bad_inputs(const std::string& name, Loss loss) {
  const auto call = [loss](const Shape& input, DType input_dtype, const Shape& target, DType target_dtype) {
    return [=] {
      loss({Tensor::zeros(input, {.dtype = input_dtype}), Tensor::zeros(target, {.dtype = target_dtype})},
           Reduction::mean);
    };
  };
  return {{"two shapes", call({4, 1}, DType::f32, {4}, DType::f32),
           name + ": input f32[4, 1] and target f32[4] must have one shape; use reshape or expand"},
          {"integers", call({4}, DType::f32, {4}, DType::i64),
           name + ": needs a floating input and target, got f32[4] and i64[4]; use cast"},
          {"two dtypes", call({4}, DType::f32, {4}, DType::f64),
           name + ": f32[4] on cpu and f64[4] on cpu must have one dtype and one device; use cast"},
          {"no target", [=] { loss({Tensor::zeros({2}), Tensor()}, Reduction::mean); },
           name + ": needs an input and a target, got f32[2] and"}};
}

Tensor mse(const std::vector<Tensor>& in, Reduction reduction) { return autograd::mse_loss(in[0], in[1], reduction); }

Tensor l1(const std::vector<Tensor>& in, Reduction reduction) { return autograd::l1_loss(in[0], in[1], reduction); }

/// Away from the kink, where input and target are equal.
Tensor l1_of_small_targets(const std::vector<Tensor>& in, Reduction reduction) {
  return autograd::l1_loss(in[0], autograd::scale(in[1], 0.0625), reduction);
}

Tensor binary_cross_entropy(const std::vector<Tensor>& in, Reduction reduction) {
  return autograd::binary_cross_entropy_with_logits(in[0], in[1], reduction, in.size() > 2 ? in[2] : Tensor());
}

const Row mse_row{.name = "mse_loss",
                  .loss = mse,
                  .formula = [](double x, double t, double) { return (x - t) * (x - t); },
                  .size = [](double x, double t, double) { return (x + t) * (x + t); },
                  .exact = true};
const Row l1_row{.name = "l1_loss",
                 .loss = l1_of_small_targets,
                 .formula = [](double x, double t, double) { return std::abs(x - 0.0625 * t); },
                 .size = [](double x, double t, double) { return x + t; },
                 .input = Values::away_from_zero,
                 .target = Values::small,
                 .exact = true};
const Row binary_row{.name = "binary_cross_entropy_with_logits",
                     .loss = binary_cross_entropy,
                     .formula = [](double x, double t, double) { return softplus(x) - x * t; },
                     .size = [](double x, double t, double) { return softplus(x) + x * t; }};
const Row weighted_row{
    .name = "binary_cross_entropy_with_logits with pos_weight",
    .loss = binary_cross_entropy,
    .formula = [](double x, double t, double w) { return (1.0 - t) * softplus(x) + w * t * softplus(-x); },
    .size = [](double x, double t, double w) { return (1.0 + t + w * t) * softplus(x); },
    .weighted = true};

const Tensor input = Tensor::zeros({2, 3});

/// A call with a weight.
std::function<void()> weigh(const Tensor& weight) {
  return [=] { autograd::binary_cross_entropy_with_logits(input, input, Reduction::mean, weight); };
}

/// The mean divides, so that whole numbers do not stay whole.
OpCase mean_case(const Row& row, std::vector<BadInput> bad) {
  return {.name = row.name,
          .calls = [row](const Shape& nchw) { return calls_of(row, nchw, {Reduction::mean}); },
          .bad_inputs = std::move(bad),
          .exact_on_integers = false};
}

OpCase sums_case(const Row& row, std::vector<BadInput> bad) {
  return {.name = row.name + ", sum and none",
          .calls = [row](const Shape& nchw) { return calls_of(row, nchw, {Reduction::sum, Reduction::none}); },
          .bad_inputs = std::move(bad),
          .exact_on_integers = row.exact};
}

const RegisterOp mse_mean(mean_case(mse_row, bad_inputs("mse_loss", mse))),
    mse_sums(sums_case(mse_row, bad_inputs("mse_loss", mse)));
const RegisterOp l1_mean(mean_case(l1_row, bad_inputs("l1_loss", l1))),
    l1_sums(sums_case(l1_row, bad_inputs("l1_loss", l1)));
const std::vector<BadInput> binary_bad_inputs = bad_inputs("binary_cross_entropy_with_logits", binary_cross_entropy);
const RegisterOp binary_mean(mean_case(binary_row, binary_bad_inputs)),
    binary_sums(sums_case(binary_row, binary_bad_inputs));

const std::vector<BadInput> bad_weights = {
    {"a weight too long", weigh(Tensor::zeros({4})),
     "binary_cross_entropy_with_logits: pos_weight f32[4] must be floating and broadcast to the input f32[2, 3]; give "
     "one weight per class, or one number"},
    {"a weight of more dimensions", weigh(Tensor::zeros({5, 2, 3})), "pos_weight f32[5, 2, 3] must be"},
    {"a weight of integers", weigh(Tensor::zeros({3}, {.dtype = DType::i32})), "pos_weight i32[3] must be floating"}};
const RegisterOp weighted_mean(mean_case(weighted_row, bad_weights)),
    weighted_sums(sums_case(weighted_row, bad_weights));

}  // namespace
