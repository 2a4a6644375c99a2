// Op cases: sums and products, broadcasting, reductions, casts.
#include "tandem/autograd/functions.h"
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/elementwise/add.h"
#include "tandem/kernels/elementwise/add_implementations.h"
#include "tandem/kernels/elementwise/mul.h"
#include "tandem/kernels/elementwise/mul_implementations.h"
#include "tandem/kernels/elementwise/scale.h"
#include "tandem/kernels/elementwise/scale_implementations.h"
#include "tandem/kernels/reduce/sum.h"
#include "tandem/kernels/reduce/sum_implementations.h"
#include "tandem/kernels/reduce/sum_to_implementations.h"
#include "tests/op_cases/op_case.h"

#include <fmt/ranges.h>

using namespace tandem;
using namespace tandem::test;

namespace {

using Binary = void (*)(const Tensor& a, const Tensor& b, const Out& out);

/// The larger of each pair of sizes, shapes aligned at their ends.
Shape broadcast_shape(const Shape& a, const Shape& b) {
  Shape shape = a.rank() >= b.rank() ? a : b;
  const Shape& other = a.rank() >= b.rank() ? b : a;
  for (int dim = 1; dim <= other.rank(); ++dim) {
    if (shape[-dim] == 1) shape[-dim] = other[-dim];
  }
  return shape;
}

OpFunction binary_reference(Binary binary) {
  return [binary](const std::vector<Tensor>& in) {
    const Shape shape = broadcast_shape(in[0].shape(), in[1].shape());
    const Tensor out = Tensor::empty(shape, in[0].options());
    binary(in[0].expand(shape), in[1].expand(shape), Out(out));
    return out;
  };
}

std::vector<OpCall> binary_calls(const Shape& nchw, Tensor (*function)(const Tensor&, const Tensor&),
                                 Binary reference) {
  const std::int64_t n = nchw[0], c = nchw[1], h = nchw[2], w = nchw[3];
  const std::vector<std::pair<std::string, std::pair<Shape, Shape>>> pairs = {
      {"same shape", {nchw, nchw}},
      {"per channel", {nchw, {1, c, 1, 1}}},
      {"per image, on the left", {{n, 1, 1, 1}, nchw}},
      {"with a vector", {nchw, {w}}},
      {"with a number", {{}, nchw}},
      {"both broadcast", {{n, 1, h, 1}, {c, 1, w}}},
  };
  std::vector<OpCall> calls;
  for (const auto& [variant, shapes] : pairs) {
    OpCall call;
    call.variant = variant;
    call.inputs = {{.shape = shapes.first}, {.shape = shapes.second}};
    call.function = [function](const std::vector<Tensor>& in) { return function(in[0], in[1]); };
    call.reference = binary_reference(reference);
    call.terms = static_cast<double>(element_count(broadcast_shape(shapes.first, shapes.second)));
    calls.push_back(call);
  }
  return calls;
}

std::vector<BadInput> binary_bad_inputs(const std::string& name, Tensor (*function)(const Tensor&, const Tensor&)) {
  const auto call = [function](Shape a, DType a_dtype, Shape b, DType b_dtype) {
    return [=] { function(Tensor::zeros(a, {.dtype = a_dtype}), Tensor::zeros(b, {.dtype = b_dtype})); };
  };
  return {
      {"shapes that do not broadcast", call({2, 3}, DType::f32, {2, 4}, DType::f32),
       name + ": shapes f32[2, 3] and f32[2, 4]"},
      {"two dtypes", call({2}, DType::f32, {2}, DType::f64), name + ": f32[2] on cpu and f64[2] on cpu"},
      {"integers", call({2}, DType::i32, {2}, DType::i32), name + ": needs a floating dtype"},
      {"an undefined tensor", [=] { function(Tensor::zeros({2}), Tensor()); }, name + ": needs two defined tensors"},
  };
}

const RegisterOp add_case({
    .name = "add",
    .calls = [](const Shape& nchw) { return binary_calls(nchw, autograd::add, kernels::reference::add); },
    .bad_inputs = binary_bad_inputs("add", autograd::add),
});

const RegisterOp mul_case({
    .name = "mul",
    .calls = [](const Shape& nchw) { return binary_calls(nchw, autograd::mul, kernels::reference::mul); },
    .bad_inputs = binary_bad_inputs("mul", autograd::mul),
});

const RegisterOp scale_case({
    .name = "scale",
    .calls =
        [](const Shape& nchw) {
          std::vector<OpCall> calls;
          for (const double factor : {-0.5, 3.0, 0.0}) {
            calls.push_back({.variant = fmt::format("by {}", factor),
                             .inputs = {{.shape = nchw}},
                             .function = [=](const auto& in) { return autograd::scale(in[0], factor); },
                             .reference =
                                 [=](const auto& in) {
                                   const Tensor out = empty_like(in[0]);
                                   kernels::reference::scale(in[0], factor, Out(out));
                                   return out;
                                 }});
          }
          return calls;
        },
    .bad_inputs =
        {
            {"integers", [] { autograd::scale(Tensor::zeros({2}, {.dtype = DType::u8}), 2.0); },
             "scale: needs a floating dtype"},
            {"other shape", [] { kernels::scale(Tensor::zeros({2}), 2.0, Out(Tensor::zeros({3}))); },
             "scale: input f32[2]"},
            {"overlap",
             [] {
               const Tensor x = Tensor::zeros({4});
               kernels::scale(x.narrow(0, 0, 3), 2.0, Out(x.narrow(0, 1, 3)));
             },
             "scale: input and output f32[3] overlap"},
        },
});

OpFunction reduce_reference(void (*reduce)(const Tensor& x, const Out& out)) {
  return [reduce](const std::vector<Tensor>& in) {
    const Tensor out = Tensor::empty({}, in[0].options());
    reduce(in[0], Out(out));
    return out;
  };
}

std::vector<BadInput> reduce_bad_inputs(const std::string& name, Tensor (*function)(const Tensor&),
                                        void (*kernel)(const Tensor& x, const Out& out)) {
  return {
      {"undefined", [=] { function(Tensor()); }, name + ": needs a defined tensor"},
      {"output of rank 1", [=] { kernel(Tensor::zeros({2}), Out(Tensor::zeros({1}))); },
       name + ": the output for f32[2] must be f32[]"},
      {"output of another dtype", [=] { kernel(Tensor::zeros({2}), Out(Tensor::zeros({}, {.dtype = DType::f64}))); },
       name + ": the output for f32[2]"},
  };
}

const Tensor integers = Tensor::zeros({2}, {.dtype = DType::i64});

std::vector<BadInput> with(std::vector<BadInput> more, const std::vector<BadInput>& bad) {
  more.insert(more.end(), bad.begin(), bad.end());
  return more;
}

const RegisterOp sum_case({
    .name = "sum",
    .calls =
        [](const Shape& nchw) {
          return std::vector<OpCall>{{.inputs = {{.shape = nchw}},
                                      .function = [](const auto& in) { return autograd::sum(in[0]); },
                                      .reference = reduce_reference(kernels::reference::sum)}};
        },
    .bad_inputs = with({{"integers in the kernel", [] { kernels::sum(integers, Out(Tensor::zeros({}))); },
                         "sum: needs a floating dtype"},
                        {"a float for integers", [] { kernels::sum_to(integers, Out(Tensor::zeros({}))); },
                         "sum_to: the output for i64[2] on cpu must be i64 there, got f32[] on cpu"}},
                       reduce_bad_inputs("sum", autograd::sum, kernels::sum)),
});

const RegisterOp mean_case({
    .name = "mean",
    .calls =
        [](const Shape& nchw) {
          std::vector<OpCall> calls;
          if (element_count(nchw) == 0) return calls;  // NaN: test_functions.cpp
          calls.push_back({.inputs = {{.shape = nchw}},
                           .function = [](const auto& in) { return autograd::mean(in[0]); },
                           .reference = reduce_reference(kernels::reference::mean)});
          return calls;
        },
    .bad_inputs = with({{"integers", [] { autograd::mean(integers); }, "mean: needs a floating dtype"}},
                       reduce_bad_inputs("mean", autograd::mean, kernels::mean)),
    .exact_on_integers = false,
});

/// Sums along each dimension, along several and along all, by plain loops.
std::vector<OpCall> reductions_along(const Shape& nchw, bool is_mean) {
  std::vector<OpCall> calls;
  for (const std::vector<int>& dims :
       std::vector<std::vector<int>>{{0}, {1}, {2}, {-1}, {0, 2, 3}, {-1, -3}, {0, 1, 2, 3}}) {
    for (const bool keepdim : {false, true}) {
      Shape kept = nchw, removed;
      double terms = 1.0;
      for (const int dim : dims) {
        terms *= static_cast<double>(nchw[dim]);
        kept[dim] = -1;
      }
      for (const std::int64_t size : kept)
        if (size != -1) removed.push_back(size);
      for (const int dim : dims) kept[dim] = 1;
      if (is_mean && terms == 0.0) continue;  // NaN: test_functions.cpp
      calls.push_back({.variant = fmt::format("dims {}{}", fmt::join(dims, ", "), keepdim ? ", kept" : ""),
                       .inputs = {{.shape = nchw}},
                       .function =
                           [=](const auto& in) {
                             return is_mean ? autograd::mean(in[0], dims, keepdim)
                                            : autograd::sum(in[0], dims, keepdim);
                           },
                       .reference =
                           [=](const auto& in) {
                             const Tensor sums = Tensor::zeros(kept, in[0].options());
                             kernels::reference::sum_to(in[0], Out(sums));
                             if (is_mean) kernels::reference::scale(sums, 1.0 / terms, Out(sums));
                             return sums.view(keepdim ? kept : removed);
                           },
                       .terms = 2});
    }
  }
  return calls;
}

std::vector<BadInput> along_bad_inputs(const std::string& name,
                                       Tensor (*function)(const Tensor&, const std::vector<int>&, bool)) {
  const Tensor x = Tensor::zeros({2, 3});
  return {
      {"undefined", [=] { function(Tensor(), {0}, false); }, name + ": needs a defined tensor"},
      {"no dimensions", [=] { function(x, {}, false); }, name + ": no dimensions of f32[2, 3] are named"},
      {"a dimension twice", [=] { function(x, {1, -1}, false); }, name + ": dimension -1 of f32[2, 3] is named twice"},
      {"no such dimension", [=] { function(x, {2}, false); }, name + ": dimension 2 is out of range for f32[2, 3]"},
      {"a number", [=] { function(Tensor::zeros({}), {0}, false); }, name + ": f32[] has no dimensions"},
  };
}

const RegisterOp sum_along_case({
    .name = "sum_along",
    .calls = [](const Shape& nchw) { return reductions_along(nchw, false); },
    .bad_inputs = along_bad_inputs("sum", autograd::sum),
});

const RegisterOp mean_along_case({
    .name = "mean_along",
    .calls = [](const Shape& nchw) { return reductions_along(nchw, true); },
    .bad_inputs = with({{"integers", [] { autograd::mean(integers, {0}); },
                         "mean: needs a floating dtype (f64, f32, f16 or bf16), got i64[2]; use cast"}},
                       along_bad_inputs("mean", autograd::mean)),
    .exact_on_integers = false,
});

const RegisterOp cast_case({
    .name = "cast",
    .calls =
        [](const Shape& nchw) {
          // There and back: what the lower dtype loses is within its own rounding, which f16 and bf16 inputs do not add
          // to.
          std::vector<OpCall> calls;
          calls.push_back(
              {.variant = "to f64 and back",
               .inputs = {{.shape = nchw}},
               .function =
                   [](const auto& in) { return autograd::cast(autograd::cast(in[0], DType::f64), in[0].dtype()); },
               .reference = [](const auto& in) { return in[0].clone(); }});
          return calls;
        },
    .bad_inputs =
        {
            {"an undefined tensor", [] { autograd::cast(Tensor(), DType::f32); }, "undefined"},
            {"other shape", [] { kernels::cast(Tensor::zeros({2}), Out(Tensor::zeros({3}, {.dtype = DType::f16}))); },
             "cast: f32[2]"},
            {"shared memory",
             [] {
               const Tensor x = Tensor::zeros({4});
               kernels::cast(x, Out(x));
             },
             "share memory"},
        },
});

}  // namespace
