// Op cases: parts of tensors, and tensors joined: slice, split, concat, stack; the values of topk.
#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/concat.h"
#include "tandem/autograd/functions/slice.h"
#include "tandem/autograd/functions/topk.h"
#include "tandem/kernels/reduce/topk.h"
#include "tandem/kernels/reduce/topk_implementations.h"
#include "tests/op_cases/op_case.h"

using namespace tandem;
using namespace tandem::test;

namespace {

const Tensor kImages = Tensor::zeros({2, 3, 4, 5});

/// Elements of a dimension of row-major images, in the order of `picked`; the others in their order.
Tensor picked(const Tensor& x, int dim, const std::vector<std::int64_t>& places) {
  Shape shape = x.shape();
  shape[dim] = static_cast<std::int64_t>(places.size());
  std::int64_t inner = 1;
  for (int d = dim + 1; d < x.rank(); ++d) inner *= x.size(d);
  const std::vector<double> from = x.to_vector<double>();
  std::vector<double> to;
  const std::int64_t block = x.size(dim) * inner, blocks = block == 0 ? 0 : x.numel() / block;
  for (std::int64_t b = 0; b < blocks; ++b)
    for (const std::int64_t place : places)
      for (std::int64_t i = 0; i < inner; ++i)
        to.push_back(from[static_cast<std::size_t>(b * block + place * inner + i)]);
  return Tensor::from(to, shape);
}

OpCall call_of(std::string variant, std::vector<OpInput> inputs, OpFunction function, OpFunction reference) {
  OpCall call;
  call.variant = std::move(variant);
  call.inputs = std::move(inputs);
  call.function = std::move(function);
  call.reference = std::move(reference);
  return call;
}

std::vector<OpCall> slice_calls(const Shape& s) {
  const std::int64_t width = s[3], height = s[2], channels = s[1];
  std::vector<std::int64_t> inner, odd, last{channels - 1};
  for (std::int64_t i = 1; i < width - 1; ++i) inner.push_back(i);
  for (std::int64_t i = 1; i < height; i += 2) odd.push_back(i);
  return {
      call_of(
          "from 1 to -1", {{.shape = s}}, [](const auto& in) { return autograd::slice(in[0], -1, 1, -1); },
          [=](const auto& in) { return picked(in[0], 3, inner); }),
      call_of(
          "odd rows, end cut off", {{.shape = s}}, [](const auto& in) { return autograd::slice(in[0], 2, 1, 1000, 2); },
          [=](const auto& in) { return picked(in[0], 2, odd); }),
      call_of(
          "the last channel", {{.shape = s}}, [](const auto& in) { return autograd::slice(in[0], 1, -1); },
          [=](const auto& in) { return picked(in[0], 1, last); })};
}

const RegisterOp slice_case({
    .name = "slice",
    .calls = slice_calls,
    .bad_inputs = {{"step 0", [] { autograd::slice(kImages, 1, 0, 3, 0); },
                    "slice: step 0 along dimension 1 of f32[2, 3, 4, 5] must be positive; reversed slices are not"},
                   {"negative step", [] { autograd::slice(kImages, -1, 3, 0, -1); }, "slice: step -1"},
                   {"no such dimension", [] { autograd::slice(kImages, 4, 0); }, "dimension 4 is out of range"},
                   {"undefined", [] { autograd::slice(Tensor(), 0, 0); }, "undefined"}},
});

/// Parts of three columns and what is left, the last of them first.
std::vector<OpCall> split_calls(const Shape& s) {
  const std::int64_t width = s[3], channels = s[1], first = channels / 2;
  std::vector<std::int64_t> turned, halves;
  for (std::int64_t part = (width - 1) / 3; part >= 0; --part)
    for (std::int64_t i = 3 * part; i < std::min(3 * part + 3, width); ++i) turned.push_back(i);
  for (std::int64_t i = first; i < channels; ++i) halves.push_back(i);
  const auto swapped = [](std::vector<Tensor> parts, int dim) {
    std::reverse(parts.begin(), parts.end());
    return autograd::concat(parts, dim);
  };
  return {call_of(
              "columns by three", {{.shape = s}},
              [=](const auto& in) { return swapped(autograd::split(in[0], 3, -1), -1); },
              [=](const auto& in) { return picked(in[0], 3, turned); }),
          call_of(
              "channels, one part without a gradient", {{.shape = s}},
              [=](const auto& in) {
                return autograd::split(in[0], std::vector<std::int64_t>{first, 0, channels - first}, 1)[2];
              },
              [=](const auto& in) { return picked(in[0], 1, halves); })};
}

const RegisterOp split_case({
    .name = "split",
    .calls = split_calls,
    .bad_inputs = {{"size 0", [] { autograd::split(kImages, 0, 1); },
                    "split: parts of 0 elements along dimension 1 of f32[2, 3, 4, 5]: the size must be positive"},
                   {"sizes beyond the dimension", [] { autograd::split(kImages, std::vector<std::int64_t>{2, 2}, 1); },
                    "split: sizes 2, 2 do not add up to the 3 elements of dimension 1 of f32[2, 3, 4, 5]"},
                   {"sizes that leave something", [] { autograd::split(kImages, std::vector<std::int64_t>{2}, 1); },
                    "split: sizes 2 do not add up to the 3 elements"},
                   {"a negative size", [] { autograd::split(kImages, std::vector<std::int64_t>{4, -1}, 1); },
                    "split: sizes 4, -1 do not add up"},
                   {"no sizes", [] { autograd::split(kImages, std::vector<std::int64_t>{}, 1); },
                    "split: f32[2, 3, 4, 5] into no parts"},
                   {"no such dimension", [] { autograd::split(kImages, 1, 4); }, "dimension 4 is out of range"}},
});

/// The elements of both, row-major, with `inner` elements to each index of the dimension that is joined.
Tensor joined(const Tensor& a, const Tensor& b, std::int64_t a_run, std::int64_t b_run, const Shape& shape) {
  const std::vector<double> from_a = a.to_vector<double>(), from_b = b.to_vector<double>();
  std::vector<double> to;
  const std::int64_t run = a_run + b_run, runs = run == 0 ? 0 : element_count(shape) / run;
  for (std::int64_t r = 0; r < runs; ++r) {
    to.insert(to.end(), from_a.begin() + r * a_run, from_a.begin() + (r + 1) * a_run);
    to.insert(to.end(), from_b.begin() + r * b_run, from_b.begin() + (r + 1) * b_run);
  }
  return Tensor::from(to, shape);
}

std::vector<OpCall> concat_calls(const Shape& s) {
  const std::int64_t n = s[0], c = s[1], h = s[2], w = s[3];
  const auto along = [](int dim) { return [=](const std::vector<Tensor>& in) { return autograd::concat(in, dim); }; };
  return {call_of("channels", {{.shape = s}, {.shape = {n, 2, h, w}}}, along(1),
                  [=](const auto& in) { return joined(in[0], in[1], c * h * w, 2 * h * w, {n, c + 2, h, w}); }),
          call_of("columns, row-major", {{.shape = s, .layout = Layout::row_major}, {.shape = {n, c, h, 3}}}, along(-1),
                  [=](const auto& in) { return joined(in[0], in[1], w, 3, {n, c, h, w + 3}); }),
          call_of("images, one tensor empty", {{.shape = s}, {.shape = {0, c, h, w}}}, along(0),
                  [=](const auto& in) { return joined(in[0], in[1], n * c * h * w, 0, s); })};
}

const RegisterOp concat_case({
    .name = "concat",
    .calls = concat_calls,
    .bad_inputs =
        {{"no tensors", [] { autograd::concat({}); }, "concat: no tensors; give one or more"},
         {"numbers", [] { autograd::concat({Tensor::zeros({}), Tensor::zeros({})}); },
          "concat: numbers (f32[]) have no dimension to be joined along; use stack"},
         {"other sizes", [] { autograd::concat({kImages, Tensor::zeros({2, 3, 4, 6})}, 1); },
          "concat: tensor 0, f32[2, 3, 4, 5], and tensor 1, f32[2, 3, 4, 6], differ in more than dimension 1; reshape"},
         {"another rank", [] { autograd::concat({kImages, Tensor::zeros({2, 3})}, 1); }, "differ in more than dim"},
         {"two dtypes", [] { autograd::concat({kImages, Tensor::zeros({2, 3, 4, 5}, {.dtype = DType::f16})}); },
          "concat: tensor 0, f32[2, 3, 4, 5] on cpu, and tensor 1, f16[2, 3, 4, 5] on cpu, must have one dtype"},
         {"undefined", [] { autograd::concat({kImages, Tensor()}); }, "concat: tensor 1 of 2 is undefined"},
         {"no such dimension", [] { autograd::concat({kImages}, 4); }, "dimension 4 is out of range"}},
});

std::vector<OpCall> stack_calls(const Shape& s) {
  const std::int64_t n = s[0], c = s[1], h = s[2], w = s[3];
  const auto along = [](int dim) { return [=](const std::vector<Tensor>& in) { return autograd::stack(in, dim); }; };
  const std::vector<OpInput> two{{.shape = s}, {.shape = s}};
  return {call_of("in front", two, along(0),
                  [=](const auto& in) {
                    return joined(in[0], in[1], element_count(s), element_count(s), {2, n, c, h, w});
                  }),
          call_of("second", two, along(-4),
                  [=](const auto& in) { return joined(in[0], in[1], c * h * w, c * h * w, {n, 2, c, h, w}); }),
          call_of("last", two, along(-1), [=](const auto& in) { return joined(in[0], in[1], 1, 1, {n, c, h, w, 2}); })};
}

const RegisterOp stack_case({
    .name = "stack",
    .calls = stack_calls,
    .bad_inputs = {{"no tensors", [] { autograd::stack({}); }, "stack: no tensors; give one or more"},
                   {"two shapes", [] { autograd::stack({Tensor::zeros({2}), Tensor::zeros({3})}); },
                    "stack: tensor 0, f32[2], and tensor 1, f32[3], differ in shape; reshape or slice one"},
                   {"too far", [] { autograd::stack({kImages}, 5); },
                    "stack: dimension 5 is out of range for tensors like f32[2, 3, 4, 5]"},
                   {"too many dimensions", [] { autograd::stack({Tensor::zeros({1, 1, 1, 1, 1, 1, 1, 1})}); },
                    "has 8 dimensions already"},
                   {"undefined", [] { autograd::stack({Tensor()}); }, "stack: tensor 0 of 1 is undefined"}},
});

OpCall topk_call(std::string variant, const Shape& s, std::int64_t k, int dim, bool largest, bool sorted) {
  return call_of(
      std::move(variant), {{.shape = s, .values = Values::distinct}},
      [=](const auto& in) { return autograd::topk(in[0], k, dim, largest, sorted).values; },
      [=](const auto& in) {
        const Tensor x = (dim == -1 ? in[0] : in[0].transpose(2, 3)).contiguous();
        const Shape rows{x.size(0) * x.size(1) * x.size(2), k}, whole{x.size(0), x.size(1), x.size(2), k};
        const Tensor values = Tensor::zeros(rows, x.options()), places = Tensor::zeros(rows, {.dtype = DType::i64});
        if (values.numel() > 0)
          kernels::reference::topk(x.view({rows[0], x.size(3)}), {largest, sorted}, Out(values), Out(places));
        const Tensor result = values.view(whole);
        return dim == -1 ? result : result.transpose(2, 3);
      });
}

std::function<void()> refuse_rows(const Tensor& x, const Tensor& values, const Tensor& indices) {
  return [=] { kernels::topk(x, {}, Out(values), Out(indices)); };
}

const Tensor rows = Tensor::zeros({3, 4}), places = Tensor::zeros({3, 2}, {.dtype = DType::i64});

const RegisterOp topk_case({
    .name = "topk",
    .calls =
        [](const Shape& s) {
          return std::vector{topk_call("the best two thirds of a row", s, (2 * s[3] + 2) / 3, -1, true, true),
                             topk_call("the best", s, 1, -1, true, true),
                             topk_call("the least half of a column, in order", s, (s[2] + 1) / 2, -2, false, false),
                             topk_call("all of a column", s, s[2], -2, true, true)};
        },
    .bad_inputs =
        {{"too many", [] { autograd::topk(kImages, 6); },
          "topk: 6 elements of the 5 along dimension -1 of f32[2, 3, 4, 5]: k must be 0 to 5"},
         {"negative", [] { autograd::topk(kImages, -1, 1); }, "topk: -1 elements of the 3 along dimension 1"},
         {"a number", [] { autograd::topk(Tensor::zeros({}), 1); },
          "topk: f32[] is a number and has no dimension to look along; use reshape"},
         {"integers", [] { autograd::topk(places, 1); },
          "topk: needs a floating dtype (f64, f32, f16 or bf16), got i64[3, 2]; use cast"},
         {"no such dimension", [] { autograd::topk(kImages, 1, 4); }, "dimension 4 is out of range"},
         {"undefined", [] { autograd::topk(Tensor(), 1); }, "topk: needs a defined tensor, got undefined tensor"},
         {"indices of floats, in the kernel", refuse_rows(rows, {}, Tensor::zeros({3, 2})),
          "topk: indices must be i64, got f32[3, 2]"},
         {"more than a row has, in the kernel", refuse_rows(rows, {}, Tensor::zeros({3, 5}, {.dtype = DType::i64})),
          "topk: indices i64[3, 5] do not fit rows f32[3, 4]: as many rows, and no more elements"},
         {"values of another dtype, in the kernel",
          refuse_rows(rows, Tensor::zeros({3, 2}, {.dtype = DType::f16}), places),
          "topk: values should be f32[3, 2], got f16[3, 2]"},
         {"a cube, in the kernel", refuse_rows(Tensor::zeros({1, 3, 4}), {}, places),
          "topk: x must have shape [rows, elements], got f32[1, 3, 4]"},
         {"a transposed matrix, in the kernel", refuse_rows(Tensor::zeros({4, 3}).transpose(0, 1), {}, places),
          "topk: x f32[3, 4] with strides [1, 3] must be dense; pass contiguous()"},
         {"gradients of other rows, in the kernel",
          [] { kernels::topk_backward(Tensor::zeros({2, 2}), places, Out(rows)); },
          "topk_backward: values should be f32[3, 2], got f32[2, 2]"}},
});

}  // namespace
