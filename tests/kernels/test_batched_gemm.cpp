// batched_gemm: the products that it merges, and the fast path against gemm and the reference.
#include "tandem/kernels/gemm/batched_gemm.h"
#include "tandem/kernels/gemm/batched_gemm_implementations.h"
#include "tandem/kernels/gemm/batches.h"
#include "tandem/kernels/gemm/gemm.h"
#include "tests/kernels/conv_support.h"

namespace tandem::test {
namespace {

namespace k = tandem::kernels;

Tensor in(DType dtype, const Tensor& x) {
  const Tensor result = Tensor::empty(x.shape(), {.dtype = dtype});
  dispatch_floating(dtype, "in", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::vector<float> values = x.to_vector<float>();
    for (std::size_t i = 0; i < values.size(); ++i) Out(result).data<T>()[i] = static_cast<T>(values[i]);
  });
  return result;
}

/// The products one by one.
Tensor products_by_gemm(const Tensor& a, const Tensor& b, const Shape& shape) {
  const Tensor c = Tensor::empty(shape, a.options());
  for (std::int64_t i = 0; i < shape[0]; ++i) k::gemm(a.select(0, i), b.select(0, i), {}, Out(c.select(0, i)));
  return c;
}

bool same_bits(const Tensor& x, const Tensor& y) { return x.to_vector<float>() == y.to_vector<float>(); }

}  // namespace

TEST_CASE("batched_gemm gives the bits that gemm gives for each product") {
  struct Size {
    std::int64_t batches, m, n, k;
  };
  for (const Size& size :
       {Size{3, 1, 1, 1}, Size{2, 14, 32, 16}, Size{3, 15, 33, 17}, Size{2, 28, 64, 256}, Size{2, 29, 65, 300},
        Size{5, 64, 64, 64}, Size{2, 6, 100, 1000}, Size{2, 1100, 20, 3}, Size{2, 300, 40, 515}}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const Shape shape{size.batches, size.m, size.n};
      const Tensor a = in(dtype, normals({size.batches, size.m, size.k}, 1));
      const Tensor b = in(dtype, normals({size.batches, size.k, size.n}, 2));
      const Tensor at = in(dtype, normals({size.batches, size.k, size.m}, 3)).transpose(1, 2);
      const Tensor bt = in(dtype, normals({size.batches, size.n, size.k}, 4)).transpose(1, 2);
      for (const Tensor& left : {a, at}) {
        for (const Tensor& right : {b, bt}) {
          INFO(describe(left) << " by " << describe(right) << ", strides " << to_string(left.strides()) << ", "
                              << to_string(right.strides()));
          const Tensor c = Tensor::full(shape, std::nan(""), {.dtype = dtype});
          k::batched_gemm(left, right, Out(c));
          CHECK(same_bits(c, products_by_gemm(left, right, shape)));
        }
      }
    }
  }
}

TEST_CASE("batched_gemm gives the same bits with any number of threads") {
  const Tensor a = normals({6, 50, 70}, 1), b = normals({6, 70, 90}, 2);
  const Tensor alone = Tensor::empty({6, 50, 90}), shared = Tensor::empty({6, 50, 90});
  const int threads = num_threads();
  set_num_threads(1);
  k::batched_gemm(a, b, Out(alone));
  set_num_threads(5);
  k::batched_gemm(a, b, Out(shared));
  set_num_threads(threads);
  CHECK(same_bits(alone, shared));
}

TEST_CASE("batched_gemm merges what is one product") {
  const auto merged = [](const Tensor& a, const Tensor& b, const Shape& shape) {
    const k::Batches batches = k::merge_batches(a, b, Out(Tensor::empty(shape)));
    return std::vector{batches.a.shape(), batches.b.shape(), batches.c.shape()};
  };
  const Tensor matrix = Tensor::zeros({4, 5});
  // Rows that follow each other, and one matrix on the right.
  CHECK(merged(Tensor::zeros({2, 3, 6, 4}), matrix.expand({2, 3, 4, 5}), {2, 3, 6, 5}) ==
        std::vector<Shape>{{36, 4}, {4, 5}, {36, 5}});
  // Single rows, wherever they are.
  CHECK(merged(Tensor::zeros({7, 2, 4}).narrow(1, 0, 1), matrix.expand({7, 4, 5}), {7, 1, 5}) ==
        std::vector<Shape>{{7, 4}, {4, 5}, {7, 5}});
  // Transposed matrices are not rows that follow each other.
  CHECK(merged(Tensor::zeros({2, 4, 6}).transpose(1, 2), matrix.expand({2, 4, 5}), {2, 6, 5}) ==
        std::vector<Shape>{{2, 6, 4}, {2, 4, 5}, {2, 6, 5}});
  // One matrix on the left, and columns on the right: the transposed product.
  CHECK(merged(Tensor::zeros({3, 4}).expand({7, 3, 4}), Tensor::zeros({7, 4, 1}), {7, 3, 1}) ==
        std::vector<Shape>{{7, 4}, {4, 3}, {7, 3}});
  // Leading dimensions that are one.
  CHECK(merged(Tensor::zeros({2, 3, 6, 4}), Tensor::zeros({2, 3, 4, 5}), {2, 3, 6, 5}) ==
        std::vector<Shape>{{6, 6, 4}, {6, 4, 5}, {6, 6, 5}});
  // Leading dimensions that are not.
  CHECK(merged(Tensor::zeros({2, 1, 6, 4}).expand({2, 3, 6, 4}), Tensor::zeros({3, 4, 5}).expand({2, 3, 4, 5}),
               {2, 3, 6, 5}) == std::vector<Shape>{{2, 3, 6, 4}, {2, 3, 4, 5}, {2, 3, 6, 5}});
}

TEST_CASE("batched_gemm of nothing writes zeros, and nothing where there is nothing to write") {
  const Tensor c = Tensor::full({2, 3, 4}, 7.0);
  k::batched_gemm(Tensor::zeros({2, 3, 0}), Tensor::zeros({0, 4}), Out(c));
  CHECK(c.to_vector<float>() == std::vector<float>(24, 0.0f));
  k::batched_gemm(Tensor::zeros({0, 3, 5}), Tensor::zeros({5, 4}), Out(Tensor::empty({0, 3, 4})));
  k::batched_gemm(Tensor::zeros({2, 0, 5}), Tensor::zeros({5, 4}), Out(Tensor::empty({2, 0, 4})));
}

}  // namespace tandem::test
