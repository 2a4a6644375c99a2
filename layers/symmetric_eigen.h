// Eigenvalues and eigenvectors of a small symmetric matrix.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem::layers {

/// A = sum over i of values[i] v_i v_i^T, with v_i = row i of `vectors`: of length 1, at right angles to each other.
struct SymmetricEigen {
  std::vector<double> values;   ///< n, the largest first
  std::vector<double> vectors;  ///< n x n, row by row: row i belongs to values[i]
};

/// Of a symmetric matrix of n x n elements, row by row, by Jacobi's rotations in f64 (Golub and Van Loan: "Matrix
/// computations", 8.5), in n^3 steps or some more: for n up to some hundreds. An eigenvector's sign is free, and is
/// chosen so that the first of its elements is positive that has at least half the magnitude of its largest one. Equal
/// eigenvalues have any vectors of their space, the same at each call. Throws Error unless there are n * n elements,
/// all finite, and the matrix is symmetric but for rounding.
/// Example:
///     const std::vector<double> matrix{2, 1, 1, 2};
///     const SymmetricEigen eigen = symmetric_eigen(matrix, 2);
///     const double largest = eigen.values[0];  // 3, of the vector (0.7071, 0.7071)
SymmetricEigen symmetric_eigen(std::span<const double> matrix, std::int64_t n);

}  // namespace tandem::layers
