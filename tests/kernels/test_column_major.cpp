// Products by columns, as BLAS has them: every way a matrix may lie in memory, computed by a BLAS of plain loops.
#include "tandem/kernels/gemm/cublas/column_major.h"
#include "tandem/kernels/gemm/gemm_impl.h"
#include "tandem/kernels/gemm/gemm_implementations.h"
#include "tests/kernels/host_blas.h"
#include "tests/kernels/product_support.h"
#include "tests/support/catch.h"

namespace tandem::test {
namespace {

namespace k = tandem::kernels;

/// Ways to store a matrix that BLAS can take.
enum class Stored { dense, wider, by_columns, wider_by_columns };
constexpr Stored kStored[] = {Stored::dense, Stored::wider, Stored::by_columns, Stored::wider_by_columns};

Tensor stored(Stored how, std::int64_t rows, std::int64_t columns, DType dtype, unsigned seed) {
  switch (how) {
    case Stored::dense:
      return drawn({rows, columns}, dtype, seed, true);
    case Stored::wider:
      return drawn({rows + 2, columns + 3}, dtype, seed, true).narrow(0, 1, rows).narrow(1, 2, columns);
    case Stored::by_columns:
      return drawn({columns, rows}, dtype, seed, true).transpose(0, 1);
    default:
      return drawn({columns + 1, rows + 5}, dtype, seed, true).narrow(0, 1, columns).narrow(1, 3, rows).transpose(0, 1);
  }
}

struct Size {
  std::int64_t m, n, k;
};

/// Multiplies by host_blas and by the reference.
void check(const Tensor& a, const Tensor& b, const k::GemmOptions& options, const Tensor& c) {
  const Tensor expected = in_f64(c);
  k::reference::gemm(in_f64(a), in_f64(b), options, Out(expected));
  const auto product = k::by_columns(a, b, options, Out(c));
  REQUIRE(product.has_value());
  host_blas(*product);
  CHECK(difference(c, expected) == "");
}

}  // namespace

TEST_CASE("products by columns equal products by rows", "[gemm]") {
  for (const Size size : {Size{3, 5, 4}, Size{1, 5, 4}, Size{3, 1, 4}, Size{3, 5, 1}, Size{1, 1, 1}, Size{7, 2, 9}})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const bool accumulate : {false, true})
          for (const Stored how_a : kStored)
            for (const Stored how_b : kStored) {
              INFO(size.m << "x" << size.n << "x" << size.k << " ta " << transpose_a << " tb " << transpose_b << " add "
                          << accumulate << " a " << static_cast<int>(how_a) << " b " << static_cast<int>(how_b));
              const Tensor a =
                  stored(how_a, transpose_a ? size.k : size.m, transpose_a ? size.m : size.k, DType::f32, 1);
              const Tensor b =
                  stored(how_b, transpose_b ? size.n : size.k, transpose_b ? size.k : size.n, DType::f32, 2);
              for (const Stored how_c : {Stored::dense, Stored::wider})
                check(a, b, {transpose_a, transpose_b, accumulate}, stored(how_c, size.m, size.n, DType::f32, 3));
            }
  for (const DType dtype : {DType::f16, DType::bf16})
    check(stored(Stored::dense, 3, 4, dtype, 1), stored(Stored::wider, 4, 5, dtype, 2), {.accumulate = true},
          stored(Stored::dense, 3, 5, dtype, 3));
}

TEST_CASE("a product by columns writes only its part of a larger matrix", "[gemm]") {
  const Tensor large = Tensor::full({6, 8}, 7.0), c = large.narrow(0, 2, 3).narrow(1, 1, 5);
  const Tensor a = drawn({3, 4}, DType::f32, 1, true), b = drawn({4, 5}, DType::f32, 2, true);
  check(a, b, {}, c);
  for (std::int64_t i = 0; i < 6; ++i)
    for (std::int64_t j = 0; j < 8; ++j)
      if (i < 2 || i > 4 || j < 1 || j > 5) CHECK(large.data<float>()[i * 8 + j] == 7.0f);
}

TEST_CASE("what BLAS cannot multiply is not asked of it", "[gemm]") {
  const Tensor a = drawn({4, 6}, DType::f32, 1, true), b = drawn({6, 3}, DType::f32, 2, true),
               c = Tensor::zeros({4, 3});
  CHECK(k::by_columns(a, b, {}, Out(c)));
  const Tensor sparse = drawn({8, 12}, DType::f32, 1, true).narrow(0, 0, 4, 2).narrow(1, 0, 6, 2);  // gaps both ways
  CHECK(!k::by_columns(sparse, b, {}, Out(c)));
  CHECK(!k::by_columns(drawn({1, 6}, DType::f32, 1, true).expand({4, 6}), b, {}, Out(c)));  // rows that overlap
  CHECK(!k::by_columns(drawn({9}, DType::f32, 1, true).as_strided({4, 6}, {1, 1}, 0), b, {}, Out(c)));
  CHECK(!k::by_columns(in_f64(a), in_f64(b), {}, Out(in_f64(c))));
}

TEST_CASE("implementations of products have names", "[gemm]") {
  for (const auto impl : {k::GemmImpl::automatic, k::GemmImpl::fused, k::GemmImpl::cublas})
    CHECK(k::parse_gemm_impl(k::name_of(impl)) == impl);
  CHECK(k::name_of(k::GemmImpl::cublas) == "cublas");
  CHECK_THAT(error_of([] { k::parse_gemm_impl("fast"); }), ContainsText("'fast' (choices: auto, fused, cublas)"));
}

TEST_CASE("cuBLAS is refused on the CPU", "[gemm]") {
  const Tensor a = Tensor::zeros({2, 2});
  for (const auto impl : {k::GemmImpl::automatic, k::GemmImpl::fused})
    k::gemm(a, a, {.impl = impl}, Out(Tensor::zeros({2, 2})));
  CHECK_THAT(error_of([&] { k::gemm(a, a, {.impl = k::GemmImpl::cublas}, Out(Tensor::zeros({2, 2}))); }),
             ContainsText("gemm: cuBLAS runs on GPUs, not on the CPU; choose auto or fused"));
}

}  // namespace tandem::test
