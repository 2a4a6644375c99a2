// Op cases: matmul, by its rules for vectors, matrices and batches.
#include "tandem/autograd/functions/matmul.h"
#include "tandem/kernels/gemm/batched_gemm.h"
#include "tests/op_cases/op_case.h"

using namespace tandem;
using namespace tandem::test;

namespace {

/// The elements of the product of [..., M, K] and [..., K, N] with the leading dimensions `batch`, in row-major order.
std::vector<double> product(const Tensor& left, const Tensor& right, const Shape& batch) {
  const std::int64_t m = left.size(-2), k = left.size(-1), n = right.size(-1);
  const auto elements = [&](const Tensor& matrices) {
    Shape shape = batch;
    shape.push_back(matrices.size(-2));
    shape.push_back(matrices.size(-1));
    return matrices.expand(shape).to_vector<double>();
  };
  const std::vector<double> a = elements(left), b = elements(right);
  std::vector<double> c;
  for (std::int64_t row = 0; row < element_count(batch) * m; ++row) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0.0;
      for (std::int64_t p = 0; p < k; ++p)
        sum += a[static_cast<std::size_t>(row * k + p)] * b[static_cast<std::size_t>((row / m * k + p) * n + j)];
      c.push_back(sum);
    }
  }
  return c;
}

OpCall call_of(std::string variant, const Shape& a, const Shape& b, const Shape& batch, const Shape& result) {
  OpCall call;
  call.variant = std::move(variant);
  call.inputs = {{.shape = a}, {.shape = b}};
  call.function = [](const std::vector<Tensor>& in) { return autograd::matmul(in[0], in[1]); };
  call.reference = [=](const std::vector<Tensor>& in) {
    const Tensor left = in[0].rank() == 1 ? in[0].unsqueeze(0) : in[0];
    const Tensor right = in[1].rank() == 1 ? in[1].unsqueeze(1) : in[1];
    return Tensor::from(product(left, right, batch), result);
  };
  // Of the output, and of gradients that are sums over rows or columns of all matrices.
  std::int64_t longest = 0;
  for (const Shape& shape : {a, b})
    for (const std::int64_t size : shape) longest = std::max(longest, size);
  call.terms = static_cast<double>(longest * element_count(batch) + longest);
  return call;
}

std::vector<OpCall> calls(const Shape& nchw) {
  const std::int64_t n = nchw[0], c = nchw[1], h = nchw[2], w = nchw[3];
  const Shape batch{n, c};
  return {call_of("a batch", nchw, {n, c, w, h}, batch, {n, c, h, h}),
          call_of("one matrix on the right", nchw, {w, 5}, batch, {n, c, h, 5}),
          call_of("one matrix on the left", {5, h}, nchw, batch, {n, c, 5, w}),
          call_of("both broadcast", {n, 1, h, w}, {c, w, 3}, batch, {n, c, h, 3}),
          call_of("a row on the left", {h}, nchw, batch, {n, c, w}),
          call_of("a column on the right", nchw, {w}, batch, {n, c, h}),
          call_of("columns of a batch", {5, h}, {n, c, h, 1}, batch, {n, c, 5, 1}),
          call_of("matrices", {n * c, h}, {h, w}, {}, {n * c, w}),
          call_of("vectors", {w}, {w}, {}, {})};
}

std::function<void()> refuse(const Shape& a, const Shape& b, DType a_dtype = DType::f32, DType b_dtype = DType::f32) {
  return [=] { autograd::matmul(Tensor::zeros(a, {.dtype = a_dtype}), Tensor::zeros(b, {.dtype = b_dtype})); };
}

std::function<void()> refuse_kernel(const Tensor& a, const Tensor& b, const Tensor& c) {
  return [=] { kernels::batched_gemm(a, b, Out(c)); };
}

const Tensor left = Tensor::zeros({2, 3, 4}), right = Tensor::zeros({2, 4, 5});

const RegisterOp matmul_case({
    .name = "matmul",
    .calls = calls,
    .bad_inputs =
        {{"sizes that do not fit", refuse({2, 3}, {4, 5}),
          "matmul: f32[2, 3] and f32[4, 5] do not fit: rows of 3 elements times columns of 4; transpose one"},
         {"vectors of two sizes", refuse({3}, {4}), "matmul: f32[3] and f32[4] do not fit"},
         {"batches that do not broadcast", refuse({2, 3, 4}, {3, 4, 5}),
          "matmul: the leading dimensions of f32[2, 3, 4] and f32[3, 4, 5] do not broadcast; reshape or expand one"},
         {"a number", refuse({}, {3}), "matmul: needs vectors or matrices, got f32[] and f32[3]; use mul for numbers"},
         {"two dtypes", refuse({2, 3}, {3, 2}, DType::f32, DType::f16),
          "matmul: f32[2, 3] on cpu and f16[3, 2] on cpu must have one dtype and one device; use cast or to"},
         {"integers", refuse({2, 3}, {3, 2}, DType::i32, DType::i32),
          "matmul: needs a floating dtype (f64, f32, f16 or bf16), got i32[2, 3] and i32[3, 2]; use cast"},
         {"undefined", [] { autograd::matmul(Tensor(), left); }, "matmul: needs two defined tensors, got undefined"},
         {"a result of another shape, in the kernel", refuse_kernel(left, right, Tensor::zeros({2, 3, 4})),
          "batched_gemm: shapes do not fit: a f32[2, 3, 4], b f32[2, 4, 5], c f32[2, 3, 4]"},
         {"another batch, in the kernel", refuse_kernel(left, right, Tensor::zeros({3, 3, 5})),
          "batched_gemm: shapes do not fit"},
         {"a vector, in the kernel", refuse_kernel(left, Tensor::zeros({4}), Tensor::zeros({2, 3})),
          "batched_gemm: needs matrices, got a f32[2, 3, 4], b f32[4], c f32[2, 3]"},
         {"a result of another dtype, in the kernel",
          refuse_kernel(left, right, Tensor::zeros({2, 3, 5}, {.dtype = DType::f16})),
          "batched_gemm: dtypes differ: a f32[2, 3, 4], b f32[2, 4, 5], c f16[2, 3, 5]; use cast"},
         {"a transposed result, in the kernel", refuse_kernel(left, right, Tensor::zeros({2, 5, 3}).transpose(1, 2)),
          "batched_gemm: c f32[2, 3, 5] with strides [15, 1, 3] must be dense; make it contiguous()"}},
});

}  // namespace
