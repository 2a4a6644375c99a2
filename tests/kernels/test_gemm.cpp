// gemm and linear against the reference: exact on whole numbers, bounded on random ones; errors.
#include "tandem/kernels/gemm/gemm.h"
#include "tandem/kernels/gemm/gemm_implementations.h"
#include "tandem/kernels/gemm/linear.h"
#include "tandem/kernels/gemm/linear_implementations.h"
#include "tests/kernels/conv_support.h"

namespace tandem::test {
namespace {

namespace k = tandem::kernels;

struct Size {
  std::int64_t m, n, k;
};

/// Sizes on both sides of every tile, panel and block.
std::vector<Size> sizes() {
  return {{1, 1, 1},  {0, 3, 2},     {3, 0, 2},     {3, 2, 0},     {14, 32, 16},   {15, 33, 17},
          {7, 31, 5}, {128, 10, 32}, {29, 65, 300}, {1800, 3, 20}, {5, 1100, 260}, {128, 256, 515}};
}

Tensor stored(std::int64_t rows, std::int64_t columns, bool transposed, unsigned seed, bool whole) {
  const Shape shape = transposed ? Shape{columns, rows} : Shape{rows, columns};
  return whole ? integers(shape, seed) : normals(shape, seed);
}

}  // namespace

TEST_CASE("gemm matches the reference") {
  for (const Size size : sizes())
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const bool accumulate : {false, true}) {
          INFO(size.m << "x" << size.n << "x" << size.k << " ta " << transpose_a << " tb " << transpose_b << " add "
                      << accumulate);
          const k::GemmOptions options{transpose_a, transpose_b, accumulate};
          const Shape shape{size.m, size.n};
          for (const bool whole : {true, false}) {
            const Tensor a = stored(size.m, size.k, transpose_a, 1, whole);
            const Tensor b = stored(size.k, size.n, transpose_b, 2, whole);
            const Tensor start = whole ? integers(shape, 3) : normals(shape, 3);
            const Tensor c = accumulate ? start.clone() : poisoned(shape), expected = start.clone();
            k::gemm(a, b, options, Out(c));
            k::reference::gemm(a, b, options, Out(expected));
            if (whole) {
              CHECK(equal(c, expected));
              continue;
            }
            const Tensor scale = absolute(start);
            k::reference::gemm(absolute(a), absolute(b), {transpose_a, transpose_b, true}, Out(scale));
            CHECK(error_in_eps(c, expected, scale) <= static_cast<double>(size.k) + 2.0);
          }
        }
}

TEST_CASE("gemm writes only its part of a larger matrix") {
  const Tensor a = integers({20, 9}, 1), b = integers({9, 40}, 2), large = Tensor::full({25, 50}, 7.0);
  const Tensor part = large.narrow(0, 2, 20).narrow(1, 5, 40), expected = Tensor::empty({20, 40});
  k::gemm(a, b, {}, Out(part));
  k::reference::gemm(a, b, {}, Out(expected));
  CHECK(equal(part.contiguous(), expected));
  CHECK(equal(large.narrow(0, 0, 2).contiguous(), Tensor::full({2, 50}, 7.0)));
  CHECK(equal(large.narrow(1, 45, 5).contiguous(), Tensor::full({25, 5}, 7.0)));
}

TEST_CASE("gemm refuses matrices that do not fit") {
  const Tensor a = integers({3, 4}, 1), b = integers({5, 2}, 2), c = Tensor::empty({3, 2});
  CHECK_THROWS_AS(k::gemm(a, b, {}, Out(c)), Error);
  CHECK_THROWS_AS(k::gemm(a, integers({4}, 2), {}, Out(c)), Error);
  CHECK_THROWS_AS(k::gemm(a, Tensor::zeros({4, 2}, {DType::f64, Layout::row_major, {}}), {}, Out(c)), Error);
  CHECK_THROWS_AS(k::gemm(a, integers({4, 2}, 2), {}, Out(Tensor::empty({2, 3}).transpose(0, 1))), Error);
}

TEST_CASE("linear matches the reference") {
  for (const Size size : sizes())
    for (const bool relu : {false, true}) {
      INFO(size.m << " rows, " << size.n << " outputs, " << size.k << " inputs, relu " << relu);
      const Tensor x = integers({size.m, size.k}, 1), w = integers({size.n, size.k}, 2), bias = integers({size.n}, 3);
      const Tensor y = poisoned({size.m, size.n}), expected = poisoned({size.m, size.n});
      k::linear_forward(x, w, bias, relu, Out(y));
      k::reference::linear_forward(x, w, bias, relu, Out(expected));
      CHECK(equal(y, expected));
      k::linear_forward(x, w, {}, relu, Out(y));
      k::reference::linear_forward(x, w, {}, relu, Out(expected));
      CHECK(equal(y, expected));

      const Tensor grad_y = integers({size.m, size.n}, 4), output = relu ? expected : Tensor();
      const Tensor gx = poisoned(x.shape()), gw = poisoned(w.shape()), gb = poisoned({size.n});
      const Tensor gx2 = poisoned(x.shape()), gw2 = poisoned(w.shape()), gb2 = poisoned({size.n});
      k::linear_backward(x, w, output, grad_y, Out(gx), Out(gw), Out(gb));
      k::reference::linear_backward(x, w, output, grad_y, Out(gx2), Out(gw2), Out(gb2));
      CHECK(equal(gx, gx2));
      CHECK(equal(gw, gw2));
      CHECK(equal(gb, gb2));
      k::linear_backward(x, w, output, grad_y, {}, {}, {});
    }
}

TEST_CASE("linear runs in f64") {
  const TensorOptions f64{DType::f64, Layout::row_major, {}};
  const Tensor x = Tensor::full({2, 3}, 0.1, f64), w = Tensor::full({4, 3}, 2.0, f64), y = Tensor::empty({2, 4}, f64);
  k::linear_forward(x, w, {}, false, Out(y));
  CHECK(y.data<double>()[7] == Approx(0.6).epsilon(1e-15));
}

TEST_CASE("linear refuses wrong tensors") {
  const Tensor x = integers({3, 4}, 1), w = integers({5, 4}, 2), y = Tensor::empty({3, 5});
  CHECK_THROWS_AS(k::linear_forward(x, integers({5, 3}, 2), {}, false, Out(y)), Error);
  CHECK_THROWS_AS(k::linear_forward(x, w, integers({4}, 2), false, Out(y)), Error);
  CHECK_THROWS_AS(k::linear_forward(x, w, {}, false, {}), Error);
  CHECK_THROWS_AS(k::linear_forward(integers({4, 3}, 1).transpose(0, 1), w, {}, false, Out(y)), Error);
  CHECK_THROWS_AS(k::linear_backward(x, w, y, Tensor::empty({3, 4}), {}, {}, {}), Error);
}

}  // namespace tandem::test
