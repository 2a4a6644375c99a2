// Op cases: functions of two tensors with broadcasting, and where, against formulas in f64.
#include "tandem/autograd/functions.h"
#include "tandem/kernels/elementwise/where.h"
#include "tests/op_cases/op_case.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

using Function = Tensor (*)(const Tensor&, const Tensor&);

struct Row {
  std::string name;
  Function function;
  double (*formula)(double, double);
  Values a = Values::normal, b = Values::normal;
  double terms = 2.0;
  bool exact = false;
  /// Halves round what the gradient of a broadcast operand is summed up from. Where these terms cancel, that is more
  /// than the sum's own rounding, and the bounds know nothing of it: then halves are for operands of one shape.
  bool halves_broadcast = true;
};

struct Shapes {
  std::string variant;
  Shape a, b;
};

/// Shapes that broadcast to nchw.
std::vector<Shapes> shapes_of(const Shape& nchw) {
  const std::int64_t n = nchw[0], c = nchw[1], h = nchw[2], w = nchw[3];
  return {
      {"same shape", nchw, nchw},   {"per channel", nchw, {1, c, 1, 1}}, {"per image, on the left", {n, 1, 1, 1}, nchw},
      {"with a vector", nchw, {w}}, {"with a number", {}, nchw},         {"both broadcast", {n, 1, h, 1}, {c, 1, w}}};
}

Tensor reference(const Row& row, const Shape& shape, const std::vector<Tensor>& in) {
  std::vector<double> a = in[0].expand(shape).to_vector<double>(), b = in[1].expand(shape).to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = row.formula(a[i], b[i]);
  return Tensor::from(a, shape);
}

std::vector<OpCall> calls_of(const Row& row, const Shape& nchw) {
  std::vector<OpCall> calls;
  for (const Shapes& shapes : shapes_of(nchw)) {
    OpCall call;
    call.variant = shapes.variant;
    call.inputs = {{.shape = shapes.a, .values = row.a}, {.shape = shapes.b, .values = row.b}};
    call.function = [row](const std::vector<Tensor>& in) { return row.function(in[0], in[1]); };
    call.reference = [=](const std::vector<Tensor>& in) { return reference(row, nchw, in); };
    call.magnitude = [=](const std::vector<Tensor>& in) { return absolute({reference(row, nchw, in)})[0]; };
    // The gradient of a number is a sum over all.
    call.terms = row.terms + static_cast<double>(element_count(nchw));
    calls.push_back(call);
  }
  return calls;
}

std::vector<BadInput> bad_inputs(const std::string& name, Function function) {
  const auto call = [function](Shape a, DType a_dtype, Shape b, DType b_dtype) {
    return [=] { function(Tensor::zeros(a, {.dtype = a_dtype}), Tensor::zeros(b, {.dtype = b_dtype})); };
  };
  return {{"shapes that do not broadcast", call({2, 3}, DType::f32, {2, 4}, DType::f32),
           name + ": shapes f32[2, 3] and f32[2, 4] do not broadcast"},
          {"two dtypes", call({2}, DType::f32, {2}, DType::f64),
           name + ": f32[2] on cpu and f64[2] on cpu must have one dtype and one device; use cast"},
          {"integers", call({2}, DType::i32, {2}, DType::i32),
           name + ": needs a floating dtype (f64, f32, f16 or bf16), got i32[2]"},
          {"an undefined tensor", [=] { function(Tensor::zeros({2}), Tensor()); },
           name + ": needs two defined tensors, got f32[2] and"}};
}

OpCase case_of(const Row& row) {
  return {.name = row.halves_broadcast ? row.name : row.name + "_broadcast",
          .calls = [row](const Shape& nchw) { return calls_of(row, nchw); },
          .bad_inputs = bad_inputs(row.name, row.function),
          .exact_on_integers = row.exact,
          .dtypes = row.halves_broadcast ? std::vector{DType::f32, DType::f16, DType::bf16} : std::vector{DType::f32}};
}

OpCase same_shape_case_of(const Row& row) {
  OpCase op = case_of(row);
  op.name = row.name;
  op.calls = [row](const Shape& nchw) { return std::vector{calls_of(row, nchw).front()}; };
  op.dtypes = {DType::f32, DType::f16, DType::bf16};
  return op;
}

const RegisterOp sub_case(case_of(
    {.name = "sub", .function = autograd::sub, .formula = [](double a, double b) { return a - b; }, .exact = true}));
const Row div_row{.name = "div",
                  .function = autograd::div,
                  .formula = [](double a, double b) { return a / b; },
                  .b = Values::positive,
                  .halves_broadcast = false};
const RegisterOp div_case(same_shape_case_of(div_row)), div_broadcast_case(case_of(div_row));
const RegisterOp pow_case(case_of({.name = "pow",
                                   .function = autograd::pow,
                                   .formula = [](double a, double b) { return std::pow(a, b); },
                                   .a = Values::positive,
                                   .terms = 16.0}));
const RegisterOp maximum_case(case_of({.name = "maximum",
                                       .function = autograd::maximum,
                                       .formula = [](double a, double b) { return a > b ? a : b; },
                                       .exact = true}));
const RegisterOp minimum_case(case_of({.name = "minimum",
                                       .function = autograd::minimum,
                                       .formula = [](double a, double b) { return a < b ? a : b; },
                                       .exact = true}));

/// Ones and zeros in no plain order.
Tensor mask_of(const Shape& shape, Device device) {
  std::vector<std::uint8_t> values(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::uint8_t>(i * 5 % 7 < 3 ? 1 + i % 200 : 0);
  return Tensor::from(values, shape).to(device);
}

std::vector<OpCall> where_calls(const Shape& nchw) {
  std::vector<OpCall> calls;
  const std::vector<Shape> masks = {nchw, {1, nchw[1], 1, 1}, nchw, {nchw[0], 1, nchw[2], 1}, nchw, {nchw[3]}};
  std::size_t index = 0;
  for (const Shapes& shapes : shapes_of(nchw)) {
    const Shape mask = masks[index++];
    OpCall call;
    call.variant = fmt::format("{}, mask {}", shapes.variant, to_string(mask));
    call.inputs = {{.shape = shapes.a}, {.shape = shapes.b}};
    call.function = [=](const std::vector<Tensor>& in) {
      return autograd::where(mask_of(mask, in[0].device()), in[0], in[1]);
    };
    call.reference = [=](const std::vector<Tensor>& in) {
      const std::vector<double> chosen = mask_of(mask, {}).expand(nchw).to_vector<double>();
      std::vector<double> a = in[0].expand(nchw).to_vector<double>();
      const std::vector<double> b = in[1].expand(nchw).to_vector<double>();
      for (std::size_t i = 0; i < a.size(); ++i) a[i] = chosen[i] != 0.0 ? a[i] : b[i];
      return Tensor::from(a, nchw);
    };
    call.terms = static_cast<double>(element_count(nchw));
    calls.push_back(call);
  }
  return calls;
}

const Tensor pair = Tensor::zeros({2}), mask = Tensor::zeros({2}, {.dtype = DType::u8});

const RegisterOp where_case({
    .name = "where",
    .calls = where_calls,
    .bad_inputs =
        {{"a condition of floats", [] { autograd::where(pair, pair, pair); },
          "where: the condition must be a u8 tensor (0 or not), got f32[2]; use cast"},
         {"no condition", [] { autograd::where(Tensor(), pair, pair); }, "where: needs a condition, a u8 tensor"},
         {"a condition of another shape", [] { autograd::where(Tensor::zeros({3}, {.dtype = DType::u8}), pair, pair); },
          "where: condition u8[3], a f32[2] and b f32[2] do not broadcast"},
         {"two dtypes", [] { autograd::where(mask, pair, Tensor::zeros({2}, {.dtype = DType::f16})); },
          "where: f32[2] on cpu and f16[2] on cpu must have one dtype and one device; use cast"},
         {"a number that integers cannot be", [] { autograd::where(mask, mask, 0.5); },
          "where: 0.5 is no number that u8[2] has, which are whole ones from 0 to 255; give cast("},
         {"a condition of another shape, in the kernel",
          [] { kernels::where(Tensor::zeros({3}, {.dtype = DType::u8}), pair, pair, Out(Tensor::zeros({2}))); },
          "where: the condition must be u8[2] on cpu (0 or not), got u8[3]"}},
});

}  // namespace
