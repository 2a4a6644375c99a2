// From strides to transposes and leading dimensions.
#include "tandem/kernels/gemm/cublas/column_major.h"

#include <algorithm>
#include <limits>

namespace tandem::kernels {
namespace {

struct Operand {
  bool transposed;
  std::int64_t leading;
};

/// How a matrix [rows, columns] lies in memory by columns: as itself if its columns are contiguous, transposed if its
/// rows are. The stride of a dimension of size 1 says nothing.
std::optional<Operand> operand_of(const Tensor& matrix) {
  const auto with_contiguous = [&](int along, int across) -> std::optional<std::int64_t> {
    const std::int64_t length = std::max<std::int64_t>(matrix.size(along), 1);
    if (matrix.size(along) > 1 && matrix.stride(along) != 1) return std::nullopt;
    const std::int64_t leading = matrix.size(across) > 1 ? matrix.stride(across) : length;
    return leading >= length ? std::optional(leading) : std::nullopt;
  };
  if (const auto leading = with_contiguous(0, 1)) return Operand{false, *leading};
  if (const auto leading = with_contiguous(1, 0)) return Operand{true, *leading};
  return std::nullopt;
}

}  // namespace

std::optional<ColumnMajorProduct> by_columns(const Tensor& a, const Tensor& b, const GemmOptions& options,
                                             const Out& c) {
  const DType dtype = c.dtype();
  if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16) return std::nullopt;
  const auto left = operand_of(options.transpose_b ? b : b.transpose(0, 1));
  const auto right = operand_of(options.transpose_a ? a : a.transpose(0, 1));
  const auto result = operand_of(c.tensor().transpose(0, 1));
  if (!left || !right || !result || result->transposed) return std::nullopt;
  const ColumnMajorProduct product{.transpose_a = left->transposed,
                                   .transpose_b = right->transposed,
                                   .m = c.size(1),
                                   .n = c.size(0),
                                   .k = a.size(options.transpose_a ? 0 : 1),
                                   .a = b.raw_data(),
                                   .a_leading = left->leading,
                                   .b = a.raw_data(),
                                   .b_leading = right->leading,
                                   .c = c.raw_data(),
                                   .c_leading = result->leading,
                                   .accumulate = options.accumulate,
                                   .dtype = dtype};
  const std::int64_t largest =
      std::max({product.m, product.n, product.k, product.a_leading, product.b_leading, product.c_leading});
  if (largest > std::numeric_limits<int>::max()) return std::nullopt;
  return product;
}

}  // namespace tandem::kernels
