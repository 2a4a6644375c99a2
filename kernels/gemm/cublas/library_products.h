// gemm and linear by a library of matrix products.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/gemm/cublas/matrix_library.h"
#include "tandem/kernels/gemm/gemm.h"

namespace tandem::kernels::cuda {

/// As kernels::gemm, none of the sizes 0. Throws Error for matrices that the library cannot take.
void library_gemm(MatrixLibrary& library, const Tensor& a, const Tensor& b, const GemmOptions& options, const Out& c);

/// As kernels::linear_forward and linear_backward, none of the sizes 0. Sums are rounded to the dtype of y once.
void library_linear_forward(MatrixLibrary& library, const Tensor& x, const Tensor& weight, const Tensor& bias,
                            bool relu, const Out& y);
void library_linear_backward(MatrixLibrary& library, const Tensor& x, const Tensor& weight, const Tensor& y,
                             const Tensor& grad_y, const Out& grad_x, const Out& grad_weight, const Out& grad_bias);

}  // namespace tandem::kernels::cuda
