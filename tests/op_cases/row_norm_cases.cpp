// Op cases: layer and group normalisation, against formulas in f64.
#include "tandem/autograd/functions.h"
#include "tandem/kernels/norm/row_norm.h"
#include "tests/op_cases/op_case.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr double kEps = 1e-3;

/// A tensor in row-major order is cut into runs of `columns`; the element i belongs to weight number of(i).
struct Cut {
  std::int64_t columns = 1;
  std::function<std::size_t(std::size_t i)> of;
};

/// Calls visit(first, mean, inverse deviation, largest) for each run of values; the largest is of their sizes.
template <typename Visit>
void for_each_run(const std::vector<double>& values, std::size_t columns, Visit&& visit) {
  const auto count = static_cast<double>(columns);
  for (std::size_t first = 0; first < values.size(); first += columns) {
    double mean = 0.0, variance = 0.0, largest = 1.0;
    for (std::size_t c = 0; c < columns; ++c) {
      mean += values[first + c] / count;
      largest = std::max(largest, std::abs(values[first + c]));
    }
    for (std::size_t c = 0; c < columns; ++c) variance += std::pow(values[first + c] - mean, 2.0) / count;
    visit(first, mean, 1.0 / std::sqrt(variance + kEps), largest);
  }
}

/// in: x, and weight and bias or neither. As `magnitude`: what the rounding errors are relative to, with statistics
/// known to a few roundings of the largest |x| of a run.
Tensor computed(const Cut& cut, bool magnitude, const std::vector<Tensor>& in) {
  const std::vector<double> x = in[0].to_vector<double>();
  const std::vector<double> weights = in.size() > 1 ? in[1].to_vector<double>() : std::vector<double>();
  const std::vector<double> biases = in.size() > 1 ? in[2].to_vector<double>() : std::vector<double>();
  std::vector<double> y(x.size());
  const auto columns = static_cast<std::size_t>(cut.columns);
  for_each_run(x, columns, [&](std::size_t first, double mean, double inverse, double largest) {
    for (std::size_t i = first; i < first + columns; ++i) {
      const double normalised = (x[i] - mean) * inverse;
      const double weight = weights.empty() ? 1.0 : weights[cut.of(i)], bias = biases.empty() ? 0.0 : biases[cut.of(i)];
      y[i] = magnitude ? (1.0 + std::abs(normalised)) * 2.0 * largest * inverse * std::abs(weight) + std::abs(bias)
                       : normalised * weight + bias;
    }
  });
  return Tensor::from(y, in[0].shape());
}

using Function = std::function<Tensor(const Tensor& x, const Tensor& weight, const Tensor& bias)>;

/// Calls with weight and bias of that shape, and without.
void append(std::vector<OpCall>& calls, const std::string& variant, const Shape& x, const Shape& parameters,
            const Cut& cut, const Function& function) {
  for (const bool affine : {true, false}) {
    OpCall call;
    call.variant = variant + (affine ? "" : ", no weight and bias");
    call.inputs = {{.shape = x}};
    if (affine) call.inputs.insert(call.inputs.end(), {{.shape = parameters}, {.shape = parameters}});
    call.function = [=](const std::vector<Tensor>& in) {
      return affine ? function(in[0], in[1], in[2]) : function(in[0], Tensor(), Tensor());
    };
    call.reference = [=](const std::vector<Tensor>& in) { return computed(cut, false, in); };
    call.magnitude = [=](const std::vector<Tensor>& in) { return computed(cut, true, in); };
    call.terms = 8.0 + static_cast<double>(std::max(cut.columns, element_count(x) / element_count(parameters)));
    calls.push_back(call);
  }
}

std::vector<OpCall> layer_norm_calls(const Shape& nchw) {
  std::vector<OpCall> calls;
  for (const Shape& end : {Shape{nchw[3]}, Shape{nchw[2], nchw[3]}, Shape{nchw[1], nchw[2], nchw[3]}}) {
    const std::int64_t columns = element_count(end);
    const Cut cut{columns, [=](std::size_t i) { return i % static_cast<std::size_t>(columns); }};
    append(calls, fmt::format("over {}", to_string(end)), nchw, end, cut,
           [=](const Tensor& x, const Tensor& weight, const Tensor& bias) {
             return autograd::layer_norm(x, end, weight, bias, kEps);
           });
  }
  return calls;
}

std::vector<OpCall> group_norm_calls(const Shape& nchw) {
  std::vector<OpCall> calls;
  const std::int64_t channels = nchw[1];
  for (const std::int64_t groups : {std::int64_t{1}, std::int64_t{4}, std::int64_t{11}, channels}) {
    if (channels % groups != 0) continue;
    std::vector<Shape> shapes{nchw};
    if (nchw[2] * nchw[3] == 1) shapes.push_back({nchw[0], channels});
    for (const Shape& shape : shapes) {
      const std::int64_t pixels = nchw[2] * nchw[3];
      const Cut cut{channels / groups * pixels, [=](std::size_t i) {
                      return i / static_cast<std::size_t>(pixels) % static_cast<std::size_t>(channels);
                    }};
      append(calls, fmt::format("{} groups, rank {}", groups, shape.rank()), shape, {channels}, cut,
             [=](const Tensor& x, const Tensor& weight, const Tensor& bias) {
               return autograd::group_norm(x, groups, weight, bias, kEps);
             });
    }
  }
  return calls;
}

const Tensor x = Tensor::zeros({2, 4, 3}), three = Tensor::zeros({3}), four = Tensor::zeros({4}),
             integers = Tensor::zeros({2, 4, 3}, {.dtype = DType::i32});

std::function<void()> layer(const Tensor& in, const Shape& end, const Tensor& weight, const Tensor& bias,
                            double eps = kEps) {
  return [=] { autograd::layer_norm(in, end, weight, bias, eps); };
}

std::function<void()> group(const Tensor& in, std::int64_t groups, const Tensor& weight, const Tensor& bias,
                            double eps = kEps) {
  return [=] { autograd::group_norm(in, groups, weight, bias, eps); };
}

/// The kernel on rows [2, 3] with statistics of this dtype.
std::function<void()> kernel(const Tensor& weight, const kernels::RowNormOptions& options, DType statistics) {
  return [=] {
    const Tensor rows = Tensor::zeros({2, 3}), numbers = Tensor::zeros({2}, {.dtype = statistics});
    kernels::row_norm_forward("row_norm", rows, weight, Tensor(), options, Out(Tensor::zeros({2, 3})), Out(numbers),
                              Out(numbers.clone()));
  };
}

const RegisterOp layer_norm_case(
    {.name = "layer_norm",
     .calls = layer_norm_calls,
     .bad_inputs = {{"another size", layer(x, {4}, four, four),
                     "layer_norm: normalized_shape [4] must be the last sizes of the input, got f32[2, 4, 3]; permute "
                     "it, or give its last sizes"},
                    {"no sizes", layer(x, {}, Tensor(), Tensor()), "layer_norm: normalized_shape [] must be"},
                    {"too many sizes", layer(three, {1, 3}, Tensor(), Tensor()), "got f32[3]"},
                    {"weight", layer(x, {3}, four, three),
                     "layer_norm: weight must be floating and of the normalized shape [3], got f32[4]"},
                    {"bias", layer(x, {3}, three, four), "layer_norm: bias must be floating and of the normalized"},
                    {"integers", layer(integers, {3}, three, three),
                     "layer_norm: needs a floating tensor, got i32[2, 4, 3]"},
                    {"nothing", layer(Tensor(), {3}, three, three), "layer_norm: needs a floating tensor"},
                    {"eps", layer(x, {3}, three, three, -1.0), "layer_norm: eps must not be negative, got -1"},
                    {"weight, in the kernel", kernel(four, {}, DType::f32),
                     "row_norm: weight of rows f32[2, 3] must have a floating dtype and shape [3], got f32[4]"},
                    {"groups, in the kernel", kernel(three, {.groups = 3}, DType::f32),
                     "row_norm: rows in groups of 3 and columns in groups of 1 do not divide f32[2, 3]"},
                    {"statistics, in the kernel", kernel(three, {}, DType::f64),
                     "row_norm: mean of rows f32[2, 3] must be dense f32[2], got f64[2]"}},
     .exact_on_integers = false});

const RegisterOp group_norm_case(
    {.name = "group_norm",
     .calls = group_norm_calls,
     .bad_inputs = {{"groups that do not divide", group(x, 3, four, four),
                     "group_norm: 4 channels of f32[2, 4, 3] cannot be cut into 3 groups; give a number that divides "
                     "them"},
                    {"no groups", group(x, 0, four, four), "cannot be cut into 0 groups"},
                    {"rank", group(three, 1, Tensor(), Tensor()),
                     "group_norm: needs a floating tensor [N, C, ...], got f32[3]"},
                    {"weight", group(x, 2, three, four),
                     "group_norm: weight of an input f32[2, 4, 3] must be floating and of shape [4], got f32[3]"},
                    {"bias", group(x, 2, four, three), "group_norm: bias of an input f32[2, 4, 3] must be floating"},
                    {"integers", group(integers, 2, four, four), "group_norm: needs a floating tensor [N, C, ...]"},
                    {"eps", group(x, 2, four, four, -1.0), "group_norm: eps must not be negative, got -1"}},
     .exact_on_integers = false});

}  // namespace
