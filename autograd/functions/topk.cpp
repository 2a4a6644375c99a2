// The largest elements along one dimension.
#include "tandem/autograd/functions/topk.h"

#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/reduce/topk.h"

#include <utility>

namespace tandem::autograd {

namespace {

/// The shapes that a dimension takes to become the last one, and back.
class Rows {
 public:
  Rows(const Shape& shape, int dim) : shape_(shape), dim_(shape.wrap(dim)) {
    for (int d = 0; d < shape.rank(); ++d) {
      if (d == dim_) continue;
      order_.push_back(d);
      count_ *= shape[d];
    }
    order_.push_back(dim_);
  }

  std::int64_t size() const { return shape_[dim_]; }
  bool is_last() const { return dim_ + 1 == shape_.rank(); }

  /// [rows, elements along the dimension], dense; of x, or of what has another size there.
  Tensor of(const Tensor& x) const { return x.permute(order_).contiguous().view({count_, x.size(dim_)}); }

  Tensor empty(std::int64_t size, const TensorOptions& options) const { return Tensor::empty({count_, size}, options); }

  /// Rows as a tensor of the shape with their size in place of the dimension's: a view.
  Tensor back(const Tensor& rows) const {
    Shape moved;
    std::vector<int> inverse(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      inverse[static_cast<std::size_t>(order_[i])] = static_cast<int>(i);
      moved.push_back(order_[i] == dim_ ? rows.size(1) : shape_[order_[i]]);
    }
    return rows.view(moved).permute(inverse);
  }

 private:
  Shape shape_;
  int dim_;
  std::vector<int> order_;
  std::int64_t count_ = 1;
};

void check(std::string_view op, const Tensor& x) {
  require(x.defined(), "{}: needs a defined tensor, got {}", op, x);
  require(x.rank() > 0, "{}: {} is a number and has no dimension to look along; use reshape", op, x);
  require(is_floating(x.dtype()), "{}: needs a floating dtype (f64, f32, f16 or bf16), got {}; use cast", op, x);
}

}  // namespace

Tensor argmax(const Tensor& x, int dim, bool keepdim) {
  check("argmax", x);
  const Rows rows(x.shape(), dim);
  require(rows.size() > 0, "argmax: dimension {} of {} has no elements, and so no greatest one", dim, x);
  return unrecorded([&] {
    const Tensor indices = rows.empty(1, {.dtype = DType::i64, .device = x.device()});
    kernels::topk(rows.of(x), {}, {}, Out(indices));
    const Tensor kept = rows.back(indices);
    return keepdim ? kept : kept.squeeze(dim);
  });
}

Topk topk(const Tensor& x, std::int64_t k, int dim, bool largest, bool sorted) {
  check("topk", x);
  const Rows rows(x.shape(), dim);
  require(k >= 0 && k <= rows.size(), "topk: {} elements of the {} along dimension {} of {}: k must be 0 to {}", k,
          rows.size(), dim, x, rows.size());
  const Tensor values = rows.empty(k, x.options());
  const Tensor indices = rows.empty(k, {.dtype = DType::i64, .device = x.device()});
  Topk result;
  unrecorded([&] {
    kernels::topk(rows.of(x), {.largest = largest, .sorted = sorted}, Out(values), Out(indices));
    result = {rows.back(values), rows.back(indices)};
  });
  result.values =
      record("topk", {x}, result.values, [rows, saved_indices = SavedTensor(indices)](const BackwardContext& context) {
        const Tensor grad = rows.of(context.grad_output());
        const Tensor grad_x = rows.is_last() ? context.new_gradient(0) : Tensor();
        const Tensor grad_rows = rows.is_last() ? rows.of(grad_x) : rows.empty(rows.size(), grad.options());
        kernels::topk_backward(grad, saved_indices.get(), Out(grad_rows));
        return std::vector<Tensor>{rows.is_last() ? grad_x : rows.back(grad_rows)};
      });
  return result;
}

}  // namespace tandem::autograd
