// Differentiable matrix products.
#include "tandem/autograd/functions/matmul.h"

#include "tandem/autograd/functions/broadcast.h"
#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/core/profiler.h"
#include "tandem/kernels/gemm/batched_gemm.h"

namespace tandem::autograd {

namespace {

/// Vectors as matrices.
Tensor left_matrix(const Tensor& a) { return a.rank() == 1 ? a.unsqueeze(0) : a; }
Tensor right_matrix(const Tensor& b) { return b.rank() == 1 ? b.unsqueeze(1) : b; }

/// Without the last two dimensions.
Shape leading(const Shape& shape) {
  return Shape(std::span(shape.begin(), static_cast<std::size_t>(shape.rank() - 2)));
}

Shape with_matrix(Shape shape, std::int64_t rows, std::int64_t columns) {
  shape.push_back(rows);
  shape.push_back(columns);
  return shape;
}

void check(const Tensor& a, const Tensor& b) {
  require(a.defined() && b.defined(), "matmul: needs two defined tensors, got {} and {}", a, b);
  require(a.rank() >= 1 && b.rank() >= 1, "matmul: needs vectors or matrices, got {} and {}; use mul for numbers", a,
          b);
  require(is_floating(a.dtype()) && is_floating(b.dtype()),
          "matmul: needs a floating dtype (f64, f32, f16 or bf16), got {} and {}; use cast", a, b);
  require(a.dtype() == b.dtype() && a.device() == b.device(),
          "matmul: {} on {} and {} on {} must have one dtype and one device; use cast or to", a, a.device(), b,
          b.device());
  const std::int64_t rows = b.size(b.rank() == 1 ? 0 : -2);
  require(a.size(-1) == rows, "matmul: {} and {} do not fit: rows of {} elements times columns of {}; transpose one", a,
          b, a.size(-1), rows);
}

/// Sizes of a product of matrices.
struct ProductShape {
  Shape batch;
  std::int64_t m, n;

  ProductShape(const Tensor& a, const Tensor& b) {
    const Tensor left = left_matrix(a), right = right_matrix(b);
    const auto shape = broadcast_shape(leading(left.shape()), leading(right.shape()));
    require(shape.has_value(), "matmul: the leading dimensions of {} and {} do not broadcast; reshape or expand one", a,
            b);
    batch = *shape;
    m = left.size(-2);
    n = right.size(-1);
  }

  /// Of all matrices, [..., M, N].
  Shape whole() const { return with_matrix(batch, m, n); }

  /// The same without the dimensions that vectors lack.
  Shape of_result(const Tensor& a, const Tensor& b) const {
    Shape shape = batch;
    if (a.rank() > 1) shape.push_back(m);
    if (b.rank() > 1) shape.push_back(n);
    return shape;
  }
};

/// True if the dimensions from `first` on can be seen as one, elements of no dimension in between.
bool merges(const Tensor& x, int first) {
  std::int64_t inner = -1;
  for (int dim = x.rank() - 1; dim >= first; --dim) {
    if (x.size(dim) == 1) continue;
    if (inner >= 0 && x.stride(dim) != inner) return false;
    inner = x.size(dim) * x.stride(dim);
  }
  return true;
}

/// The factors of a gradient of an operand with these leading dimensions: x [..., outer, depth], whose leading
/// dimensions are those of the product, as [kept..., outer, summed... * depth]. Kept are the dimensions that the
/// operand has; over the others, along which it was repeated, its gradient is summed up. A view where strides allow it.
Tensor with_summed_depth(const Tensor& x, const Shape& operand_batch) {
  const int batch = x.rank() - 2, missing = batch - operand_batch.rank();
  std::vector<int> order, summed;
  Shape shape;
  for (int dim = 0; dim < batch; ++dim) {
    const bool repeated = x.size(dim) != 1 && (dim < missing || operand_batch[dim - missing] == 1);
    (repeated ? summed : order).push_back(dim);
    if (!repeated) shape.push_back(x.size(dim));
  }
  if (summed.empty()) return x;
  shape.push_back(x.size(-2));
  order.push_back(batch);
  const int first_of_depth = static_cast<int>(order.size());
  std::int64_t depth = x.size(-1);
  for (const int dim : summed) depth *= x.size(dim);
  shape.push_back(depth);
  order.insert(order.end(), summed.begin(), summed.end());
  order.push_back(batch + 1);
  const Tensor arranged = x.permute(order);
  return (merges(arranged, first_of_depth) ? arranged : arranged.contiguous()).view(shape);
}

/// Writes the gradient of an operand, [..., rows, columns] or a vector of that many elements: the products
/// left [..., rows, depth] right^T [..., depth, columns], summed up where the operand was repeated. Leading dimensions
/// of `left` and `right` are those of the product.
void write_gradient(const Tensor& left, const Tensor& right, const Shape& operand_batch, const Out& gradient) {
  const Tensor a = with_summed_depth(left, operand_batch), b = with_summed_depth(right, operand_batch);
  kernels::batched_gemm(a, b.transpose(-2, -1),
                        Out(gradient.tensor().view(with_matrix(leading(a.shape()), a.size(-2), b.size(-2)))));
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  check(a, b);
  const ProfileRange range("forward matmul");
  const ProductShape product = unrecorded([&] { return ProductShape(a, b); });
  const Tensor y = Tensor::empty(product.of_result(a, b), a.options());
  unrecorded([&] { kernels::batched_gemm(left_matrix(a), right_matrix(b), Out(y.view(product.whole()))); });
  if (!should_record({a, b})) return y;
  return record("matmul", {a, b}, y,
                [product, saved_a = SavedTensor(requires_grad(b) ? a : Tensor()),
                 saved_b = SavedTensor(requires_grad(a) ? b : Tensor()), a_shape = a.shape(),
                 b_shape = b.shape()](const BackwardContext& context) {
                  const Tensor columns =
                      b_shape.rank() == 1 ? context.grad_output().unsqueeze(-1) : context.grad_output();
                  const Tensor grad = a_shape.rank() == 1 ? columns.unsqueeze(-2) : columns;
                  const std::vector<Tensor> gradients{context.new_gradient(0), context.new_gradient(1)};
                  const auto repeated = [&](const Tensor& matrix) {
                    return matrix.expand(with_matrix(product.batch, matrix.size(-2), matrix.size(-1)));
                  };
                  const auto batch_of = [](const Shape& shape) { return shape.rank() > 2 ? leading(shape) : Shape{}; };
                  if (context.needs(0))
                    write_gradient(grad, repeated(right_matrix(saved_b.get())), batch_of(a_shape), Out(gradients[0]));
                  if (context.needs(1)) {
                    write_gradient(repeated(left_matrix(saved_a.get())).transpose(-2, -1), grad.transpose(-2, -1),
                                   batch_of(b_shape), Out(gradients[1]));
                  }
                  return gradients;
                });
}

}  // namespace tandem::autograd
