// Newton-Schulz iteration: nearly orthogonal matrices, by products alone.
#pragma once

#include "tandem/core/tensor.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tandem::optim {

/// Defaults are those of airbench94_muon. The coefficients are made for speed: five steps bring singular values of
/// 1/100 of the norm or more between 0.5 and 1.5, and no number of steps brings them to 1.
struct NewtonSchulzOptions {
  std::int64_t steps = 3;                                       ///< 1 or more
  std::array<double, 3> coefficients{3.4445, -4.7750, 2.0315};  ///< a, b and c of the step
  double eps = 1e-7;                                            ///< above 0, added to the norm
  std::optional<DType> dtype = {};  ///< what products are taken in; empty: f64 for f64 matrices, else f32
};

/// Throws Error, which begins with `who`, for options out of range.
void check_newton_schulz(std::string_view who, const NewtonSchulzOptions& options);

/// Each matrix of [..., R, C] with its singular vectors, and other singular values, which come near to 1 with the
/// number of steps: of a matrix M, and
///   X = M / (|M| + eps), |M| the Frobenius norm, and in each step
///   A = X X^T, X <- a X + (b A + c A A) X
/// the last X, in the dtype of the matrices; where R > C, by A = X^T X from the other side, which is the same.
/// Floating, any strides, on any device; on a GPU nobody waits. A matrix of zeros stays one. Throws Error for other
/// tensors and options. Jordan: "Muon: An optimizer for hidden layers in neural networks", 2024; its repository,
/// cifar10-airbench. Example:
///     const Tensor m = Tensor::full({2, 16, 27}, 0.5);
///     const Tensor x = newton_schulz(m, {.steps = 5});  // [2, 16, 27]
Tensor newton_schulz(const Tensor& matrices, const NewtonSchulzOptions& options = {});

/// The same for matrices that were divided by their norms: of each X [n, R, C] the last X, in the dtype that it has.
/// All of one floating dtype and device, row-major; options.eps and options.dtype have no say. On a GPU three launches
/// a step for all of up to 16 X, whatever their sizes (grouped_gemm.h). Throws Error for other tensors and options.
std::vector<Tensor> newton_schulz_steps(std::vector<Tensor> x, const NewtonSchulzOptions& options = {});

}  // namespace tandem::optim
