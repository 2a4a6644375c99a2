// Matrix products on a GPU: by cuBLAS or by our tiles.
#include "tandem/core/device_query.h"
#include "tandem/kernels/gemm/cublas/library_products.h"
#include "tandem/kernels/gemm/gemm_implementations.h"
#include "tandem/kernels/gemm/linear_implementations.h"

namespace tandem::kernels::cuda {
namespace {

/// The library for a product of these sizes; null for our tiles, which take empty ones, too.
MatrixLibrary* select(GemmImpl impl, DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t work = m * n * k;
  if (impl == GemmImpl::fused || work == 0 || cuda_is_simulated()) return nullptr;
  if (impl == GemmImpl::automatic && (work < kLeastLibraryWork || dtype == DType::f64)) return nullptr;
  return find_cublas().library.get();
}

MatrixLibrary* select(GemmImpl impl, const Tensor& x, const Tensor& weight) {
  return select(impl, x.dtype(), x.size(0), weight.size(0), x.size(1));
}

}  // namespace

bool goes_to_library(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  return select(GemmImpl::automatic, dtype, m, n, k) != nullptr;
}

void gemm(const Tensor& a, const Tensor& b, const GemmOptions& options, const Out& c) {
  const std::int64_t depth = a.size(options.transpose_a ? 0 : 1);
  MatrixLibrary* const library = select(options.impl, c.dtype(), c.size(0), c.size(1), depth);
  if (library != nullptr && (options.impl == GemmImpl::cublas || by_columns(a, b, options, c)))
    return library_gemm(*library, a, b, options, c);
  tile::gemm(a, b, options, c);
}

void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu, const Out& y, GemmImpl impl) {
  if (MatrixLibrary* const library = select(impl, x, weight))
    return library_linear_forward(*library, x, weight, bias, relu, y);
  tile::linear_forward(x, weight, bias, relu, y);
}

void linear_backward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& grad_y, const Out& grad_x,
                     const Out& grad_weight, const Out& grad_bias, GemmImpl impl) {
  if (MatrixLibrary* const library = select(impl, x, weight))
    return library_linear_backward(*library, x, weight, y, grad_y, grad_x, grad_weight, grad_bias);
  tile::linear_backward(x, weight, y, grad_y, grad_x, grad_weight, grad_bias);
}

}  // namespace tandem::kernels::cuda
