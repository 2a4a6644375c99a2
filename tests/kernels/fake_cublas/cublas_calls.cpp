// Calls of cuBLAS, answered by a library that multiplies in host memory; and versions that are refused.
#include "tandem/kernels/gemm/cublas/matrix_library.h"
#include "tandem/kernels/gemm/gemm_implementations.h"
#include "tests/kernels/product_support.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

#include <optional>

namespace tandem::test {
namespace {

namespace k = tandem::kernels;

std::string refusal(const std::string& file) {
  return error_of([&] { LibraryFile(k::cublas_library(), {file}); });
}

}  // namespace

TEST_CASE("cuBLAS gets products by columns, and settings that give the same bits every time", "[gemm]") {
  const auto library = k::make_cublas({k::cublas_library(), {FAKE_CUBLAS}});
  for (const DType dtype : kGpuDTypes)
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const bool accumulate : {false, true}) {
          INFO(name_of(dtype) << " ta " << transpose_a << " tb " << transpose_b << " add " << accumulate);
          const Tensor a = drawn(transpose_a ? Shape{7, 3} : Shape{3, 7}, dtype, 1, true);
          const Tensor b = drawn(transpose_b ? Shape{5, 7} : Shape{7, 5}, dtype, 2, true);
          const Tensor c = drawn({4, 9}, dtype, 3, true).narrow(0, 1, 3).narrow(1, 2, 5), expected = in_f64(c);
          const k::GemmOptions options{transpose_a, transpose_b, accumulate};
          library->multiply(k::by_columns(a, b, options, Out(c)).value(), Device{});
          k::reference::gemm(in_f64(a), in_f64(b), options, Out(expected));
          CHECK(difference(c, expected) == "");
        }
}

TEST_CASE("what cuBLAS answers is told", "[gemm]") {
  const auto library = k::make_cublas({k::cublas_library(), {FAKE_CUBLAS}});
  const Tensor a = drawn({2, 2}, DType::f32, 1, true);
  k::ColumnMajorProduct product = k::by_columns(a, a, {}, Out(a.clone())).value();
  product.c_leading = 1;
  CHECK_THAT(error_of([&] { library->multiply(product, Device{}); }),
             ContainsText("cuBLAS: invalid value from cublasGemmEx at matrix_library_cublas.cpp:") &&
                 ContainsText("; impl fused does without it"));
}

TEST_CASE("a cuBLAS of another version or without functions is refused", "[gemm]") {
  CHECK_THAT(refusal(FAKE_CUBLAS_TOO_OLD), ContainsText("is cuBLAS 9.2.2, but"));
  CHECK_THAT(refusal(FAKE_CUBLAS_TOO_NEW), ContainsText("is cuBLAS 99.2.2, but this program knows cuBLAS"));
  CHECK_THAT(refusal(FAKE_CUDNN), ContainsText("is not the cuBLAS that is needed, it has no cublasGetProperty"));
  CHECK_THAT(refusal("/none/libcublas.so"), ContainsText("install cuBLAS, or let TANDEM_CUBLAS_LIBRARY name its"));
}

TEST_CASE("the installed cuBLAS has all functions", "[gemm][library]") {
  const LibraryRequest request = k::cublas_library();
  std::optional<LibraryFile> file;
  try {
    file.emplace(request, library_files(request, environment_variable));
  } catch (const Error& error) {
    return skip_test(error.what());
  }
  CHECK(k::make_cublas(*file) != nullptr);
  CHECK(file->version() >= request.least);
}

}  // namespace tandem::test
