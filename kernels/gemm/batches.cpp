// Merging the leading dimensions of batched matrix products.
#include "tandem/kernels/gemm/batches.h"

#include <utility>
#include <vector>

namespace tandem::kernels {
namespace {

/// One leading dimension: its size, and the steps of the operands along it.
struct BatchDim {
  std::int64_t size, a, b, c;
};

struct MatrixSteps {
  std::int64_t row, column;
};

struct Products {
  std::int64_t m, n, k;
  MatrixSteps a, b, c;
  std::vector<BatchDim> dims;
};

Products products_of(const Tensor& a, const Tensor& b, const Tensor& c) {
  const auto steps = [](const Tensor& matrix) { return MatrixSteps{matrix.stride(-2), matrix.stride(-1)}; };
  Products products{c.size(-2), c.size(-1), a.size(-1), steps(a), steps(b), steps(c), {}};
  products.c.column = 1;  // also where there is but one column
  for (int dim = 0; dim + 2 < c.rank(); ++dim)
    if (c.size(dim) != 1) products.dims.push_back({c.size(dim), a.stride(dim), b.stride(dim), c.stride(dim)});
  return products;
}

/// c^T = b^T a^T, for a c of one column, whose rows are adjacent.
void transpose(Products& products) {
  std::swap(products.m, products.n);
  const MatrixSteps left = products.a;
  products.a = {products.b.column, products.b.row};
  products.b = {left.column, left.row};
  for (BatchDim& dim : products.dims) std::swap(dim.a, dim.b);
}

/// Makes rows of the dimensions along which b stays the same.
void fold_into_rows(Products& products) {
  auto& [m, n, k, a, b, c, dims] = products;
  for (std::size_t i = dims.size(); i-- > 0;) {
    const BatchDim dim = dims[i];
    const bool follows = m == 1 || (dim.a == m * a.row && dim.c == m * c.row);
    if (dim.b != 0 || !follows) continue;
    if (m == 1) {
      a.row = dim.a;
      c.row = dim.c;
    }
    m *= dim.size;
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void merge_neighbours(std::vector<BatchDim>& dims) {
  for (std::size_t i = dims.size(); i-- > 1;) {
    BatchDim& outer = dims[i - 1];
    const BatchDim& inner = dims[i];
    const bool merges =
        outer.a == inner.size * inner.a && outer.b == inner.size * inner.b && outer.c == inner.size * inner.c;
    if (!merges) continue;
    outer = {outer.size * inner.size, inner.a, inner.b, inner.c};
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

/// Matrices of `tensor`'s memory, with the steps that `step` picks of each leading dimension.
Tensor matrices_of(const Tensor& tensor, const std::vector<BatchDim>& dims, std::int64_t BatchDim::* step,
                   std::int64_t rows, std::int64_t columns, const MatrixSteps& steps) {
  Shape shape;
  Strides strides;
  for (const BatchDim& dim : dims) {
    shape.push_back(dim.size);
    strides.push_back(dim.*step);
  }
  shape.push_back(rows);
  shape.push_back(columns);
  strides.push_back(steps.row);
  strides.push_back(steps.column);
  return tensor.as_strided(shape, strides, tensor.offset());
}

}  // namespace

Batches merge_batches(const Tensor& a, const Tensor& b, const Out& c) {
  Products products = products_of(a, b, c);
  bool shares_a = false;
  for (const BatchDim& dim : products.dims) shares_a = shares_a || (dim.a == 0 && dim.b != 0);
  const bool transposed = products.n == 1 && products.m > 1 && shares_a;
  if (transposed) transpose(products);
  fold_into_rows(products);
  merge_neighbours(products.dims);
  const auto& [m, n, k, a_steps, b_steps, c_steps, dims] = products;
  return {matrices_of(transposed ? b : a, dims, &BatchDim::a, m, k, a_steps),
          matrices_of(transposed ? a : b, dims, &BatchDim::b, k, n, b_steps),
          Out(matrices_of(c, dims, &BatchDim::c, m, n, c_steps))};
}

std::int64_t matrix_count(const Tensor& matrices) {
  std::int64_t count = 1;
  for (int dim = 0; dim + 2 < matrices.rank(); ++dim) count *= matrices.size(dim);
  return count;
}

std::int64_t matrix_offset(const Tensor& matrices, std::int64_t number) {
  std::int64_t offset = 0;
  for (int dim = matrices.rank() - 3; dim >= 0; --dim) {
    offset += number % matrices.size(dim) * matrices.stride(dim);
    number /= matrices.size(dim);
  }
  return offset;
}

Tensor matrix_at(const Tensor& matrices, std::int64_t number) {
  return matrices.as_strided({matrices.size(-2), matrices.size(-1)}, {matrices.stride(-2), matrices.stride(-1)},
                             matrices.offset() + matrix_offset(matrices, number));
}

}  // namespace tandem::kernels
