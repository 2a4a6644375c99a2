// The library's products, with bias, ReLU and its gradient as passes before and after.
#include "tandem/core/memory.h"
#include "tandem/kernels/activation/relu_implementations.h"
#include "tandem/kernels/gemm/column_sum.h"
#include "tandem/kernels/gemm/cublas/library_products.h"

namespace tandem::kernels::cuda {

void library_gemm(MatrixLibrary& library, const Tensor& a, const Tensor& b, const GemmOptions& options, const Out& c) {
  const auto product = by_columns(a, b, options, c);
  require(
      product.has_value(),
      "gemm: cuBLAS takes f32, f16 and bf16 with adjacent rows or columns and sizes below 2^31, not a {}, b {}, c {}; "
      "choose impl auto",
      describe(a), describe(b), describe(c));
  library.multiply(*product, c.device());
}

void library_linear_forward(MatrixLibrary& library, const Tensor& x, const Tensor& weight, const Tensor& bias,
                            bool relu, const Out& y) {
  // The bias first, so that it is added in float.
  if (bias.defined()) y.copy_from(bias.view({1, bias.numel()}).expand(y.shape()));
  library_gemm(library, x, weight, {.transpose_b = true, .accumulate = bias.defined()}, y);
  if (relu) relu_forward(y, y);
}

void library_linear_backward(MatrixLibrary& library, const Tensor& x, const Tensor& weight, const Tensor& y,
                             const Tensor& grad_y, const Out& grad_x, const Out& grad_weight, const Out& grad_bias) {
  Tensor gradient = grad_y;
  if (y.defined()) {
    const MemoryTagScope scope(MemoryTag::workspace);
    gradient = empty_like(grad_y);
    relu_backward(y, grad_y, Out(gradient));
  }
  if (grad_x.defined()) library_gemm(library, gradient, weight, {}, grad_x);
  if (grad_weight.defined()) library_gemm(library, gradient, x, {.transpose_a = true}, grad_weight);
  if (grad_bias.defined()) column_sum(x.size(0), weight.size(0), gradient, {}, grad_bias);
}

}  // namespace tandem::kernels::cuda
