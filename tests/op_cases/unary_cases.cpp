// Op cases: functions of one tensor, against the C++ library's functions in f64.
#include "tandem/autograd/functions.h"
#include "tandem/kernels/elementwise/unary.h"
#include "tests/op_cases/op_case.h"

#include <algorithm>
#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

/// One function with its options fixed.
struct Variant {
  std::string name;
  std::function<Tensor(const Tensor&)> function;
  double (*formula)(double);
  Values values = Values::normal;
};

OpCall call_of(const Variant& variant, const Shape& shape, double terms) {
  OpCall call;
  call.variant = variant.name;
  call.inputs = {{.shape = shape, .values = variant.values}};
  call.function = [variant](const std::vector<Tensor>& in) { return variant.function(in[0]); };
  call.reference = [variant](const std::vector<Tensor>& in) {
    std::vector<double> values = in[0].to_vector<double>();
    std::transform(values.begin(), values.end(), values.begin(), variant.formula);
    return Tensor::from(values, in[0].shape());
  };
  // Each result is known to within some units in its own last place.
  call.magnitude = [reference = call.reference](const std::vector<Tensor>& in) { return absolute({reference(in)})[0]; };
  call.terms = terms;
  return call;
}

/// `op`: what errors begin with. `terms`: roundings and polynomial error of a result or a slope, in units of one
/// rounding.
OpCase case_of(const std::string& name, const std::string& op, const std::vector<Variant>& variants, double terms,
               bool exact) {
  const auto calls = [=](const Shape& nchw) {
    std::vector<OpCall> result;
    for (const Variant& variant : variants) result.push_back(call_of(variant, nchw, terms));
    return result;
  };
  const auto function = variants.front().function;
  const auto refused = [function](const Tensor& x) { return [=] { function(x); }; };
  return {.name = name,
          .calls = calls,
          .bad_inputs = {{"undefined", refused(Tensor()), op + ": needs a defined tensor, got"},
                         {"integers", refused(Tensor::zeros({2}, {.dtype = DType::i32})),
                          op + ": needs a floating dtype (f64, f32, f16 or bf16), got i32[2]"},
                         {"a mask", refused(Tensor::zeros({2, 3}, {.dtype = DType::u8})),
                          op + ": needs a floating dtype (f64, f32, f16 or bf16), got u8[2, 3]"}},
          .exact_on_integers = exact};
}

OpCase case_of(const std::string& name, Tensor (*function)(const Tensor&), double (*formula)(double), Values values,
               double terms, bool exact = false) {
  return case_of(name, name, {{"", function, formula, values}}, terms, exact);
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double hardswish(double x) { return x <= -3.0 ? 0.0 : x >= 3.0 ? x : x * (x + 3.0) / 6.0; }

const RegisterOp exp_case(case_of("exp", autograd::exp, std::exp, Values::normal, 4.0));
const RegisterOp expm1_case(case_of("expm1", autograd::expm1, std::expm1, Values::normal, 8.0));
const RegisterOp log_case(case_of("log", autograd::log, std::log, Values::positive, 4.0));
const RegisterOp log1p_case(case_of("log1p", autograd::log1p, std::log1p, Values::positive, 8.0));
const RegisterOp sqrt_case(case_of("sqrt", autograd::sqrt, std::sqrt, Values::positive, 4.0));
const RegisterOp rsqrt_case(
    case_of("rsqrt", autograd::rsqrt, [](double x) { return 1.0 / std::sqrt(x); }, Values::positive, 8.0));
const RegisterOp reciprocal_case(
    case_of("reciprocal", autograd::reciprocal, [](double x) { return 1.0 / x; }, Values::away_from_zero, 4.0));
const RegisterOp abs_case(case_of("abs", autograd::abs, std::abs, Values::away_from_zero, 0.0, true));
const RegisterOp tanh_case(case_of("tanh", autograd::tanh, std::tanh, Values::small, 8.0));
const RegisterOp sigmoid_case(case_of("sigmoid", autograd::sigmoid, sigmoid, Values::small, 8.0));
const RegisterOp hardswish_case(case_of("hardswish", autograd::hardswish, hardswish, Values::normal, 8.0));
const RegisterOp neg_case(case_of("neg", autograd::neg, [](double x) { return -x; }, Values::normal, 0.0, true));

const RegisterOp softplus_case(
    case_of("softplus", "softplus",
            {{"", [](const Tensor& x) { return autograd::softplus(x); },
              [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }},
             {"beta 0.5", [](const Tensor& x) { return autograd::softplus(x, 0.5); },
              [](double x) { return std::max(x, 0.0) + 2.0 * std::log1p(std::exp(-0.5 * std::abs(x))); }},
             {"beta -2", [](const Tensor& x) { return autograd::softplus(x, -2.0); },
              [](double x) { return std::min(x, 0.0) - 0.5 * std::log1p(std::exp(-2.0 * std::abs(x))); }}},
            8.0, false));

const RegisterOp leaky_relu_case(case_of("leaky_relu", "leaky_relu",
                                         {{"slope 0.25", [](const Tensor& x) { return autograd::leaky_relu(x, 0.25); },
                                           [](double x) { return x > 0 ? x : 0.25 * x; }, Values::away_from_zero},
                                          {"slope -2", [](const Tensor& x) { return autograd::leaky_relu(x, -2.0); },
                                           [](double x) { return x > 0 ? x : -2.0 * x; }, Values::away_from_zero}},
                                         2.0, true));

const RegisterOp celu_case(
    case_of("celu", "celu",
            {{"alpha 0.3", [](const Tensor& x) { return autograd::celu(x, 0.3); },
              [](double x) { return x > 0 ? x : 0.3 * std::expm1(x / 0.3); }, Values::away_from_zero},
             {"alpha 2", [](const Tensor& x) { return autograd::celu(x, 2.0); },
              [](double x) { return x > 0 ? x : 2.0 * std::expm1(0.5 * x); }, Values::away_from_zero}},
            8.0, false));

// No input comes near the ends, not even rounded to bf16.
const RegisterOp clamp_case(case_of("clamp", "clamp",
                                    {{"both ends", [](const Tensor& x) { return autograd::clamp(x, -0.57, 1.03); },
                                      [](double x) { return std::clamp(x, -0.57, 1.03); }},
                                     {"one end", [](const Tensor& x) { return autograd::clamp(x, -0.57, INFINITY); },
                                      [](double x) { return std::max(x, -0.57); }},
                                     {"clamp_min", [](const Tensor& x) { return autograd::clamp_min(x, -0.57); },
                                      [](double x) { return std::max(x, -0.57); }},
                                     {"clamp_max", [](const Tensor& x) { return autograd::clamp_max(x, 1.03); },
                                      [](double x) { return std::min(x, 1.03); }}},
                                    1.0, false));

const RegisterOp pow_number_case(
    case_of("pow_number", "pow",
            {{"of 1.7", [](const Tensor& x) { return autograd::pow(x, 1.7); },
              [](double x) { return std::pow(x, 1.7); }, Values::positive},
             {"of 3", [](const Tensor& x) { return autograd::pow(x, 3); }, [](double x) { return x * x * x; }},
             {"of -2", [](const Tensor& x) { return autograd::pow(x, -2); }, [](double x) { return 1.0 / (x * x); },
              Values::away_from_zero},
             {"of 0", [](const Tensor& x) { return autograd::pow(x, 0); }, [](double) { return 1.0; }},
             {"of 2", [](const Tensor& x) { return autograd::pow(x, 2); }, [](double x) { return x * x; }},
             {"of 0.5", [](const Tensor& x) { return autograd::pow(x, 0.5); }, std::sqrt, Values::positive},
             {"of -1", [](const Tensor& x) { return autograd::pow(x, -1); }, [](double x) { return 1.0 / x; },
              Values::away_from_zero},
             {"of -0.5", [](const Tensor& x) { return autograd::pow(x, -0.5); },
              [](double x) { return 1.0 / std::sqrt(x); }, Values::positive}},
            8.0, false));

const RegisterOp number_pow_case(case_of("number_pow", "pow",
                                         {{"2.5 to the power of it",
                                           [](const Tensor& x) { return autograd::pow(2.5, x); },
                                           [](double x) { return std::pow(2.5, x); }}},
                                         8.0, false));

// No input is the number, not even rounded to bf16.
const RegisterOp maximum_number_case(
    case_of("maximum_number", "maximum",
            {{"a number", [](const Tensor& x) { return autograd::maximum(x, 0.53125); },
              [](double x) { return std::max(x, 0.53125); }},
             {"on the left", [](const Tensor& x) { return autograd::maximum(-0.53125, x); },
              [](double x) { return std::max(x, -0.53125); }}},
            1.0, false));
const RegisterOp minimum_number_case(
    case_of("minimum_number", "minimum",
            {{"a number", [](const Tensor& x) { return autograd::minimum(x, 0.53125); },
              [](double x) { return std::min(x, 0.53125); }},
             {"on the left", [](const Tensor& x) { return autograd::minimum(-0.53125, x); },
              [](double x) { return std::min(x, -0.53125); }}},
            1.0, false));

const RegisterOp add_number_case(case_of("add_number", "add",
                                         {{"a number", [](const Tensor& x) { return autograd::add(x, 2.0); },
                                           [](double x) { return x + 2.0; }}},
                                         2.0, true));
const RegisterOp sub_number_case(case_of(
    "sub_number", "sub",
    {{"a number", [](const Tensor& x) { return autograd::sub(x, 2.0); }, [](double x) { return x - 2.0; }},
     {"from a number", [](const Tensor& x) { return autograd::sub(2.0, x); }, [](double x) { return 2.0 - x; }}},
    2.0, true));
const RegisterOp div_number_case(case_of("div_number", "div",
                                         {{"by a number", [](const Tensor& x) { return autograd::div(x, 3.0); },
                                           [](double x) { return x / 3.0; }},
                                          {"a number by it", [](const Tensor& x) { return autograd::div(3.0, x); },
                                           [](double x) { return 3.0 / x; }, Values::away_from_zero}},
                                         4.0, false));

}  // namespace
