// The largest elements along one dimension.
#include "tandem/autograd/functions/topk.h"

#include "tandem/autograd/functions/operand.h"
#include "tandem/autograd/functions/rows.h"
#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/reduce/topk.h"

#include <utility>

namespace tandem::autograd {

namespace {

void check(std::string_view op, const Tensor& x) {
  require(x.defined(), "{}: needs a defined tensor, got {}", op, x);
  require(x.rank() > 0, "{}: {} is a number and has no dimension to look along; use reshape", op, x);
  require(is_floating(x.dtype()), "{}: needs a floating dtype (f64, f32, f16 or bf16), got {}; use cast", op, x);
}

}  // namespace

Tensor argmax(const Tensor& x, int dim, bool keepdim) {
  check("argmax", x);
  const Rows rows(x, dimension_of("argmax", x, dim));
  require(rows.size() > 0, "argmax: dimension {} of {} has no elements, and so no greatest one", dim, x);
  return unrecorded([&] {
    const Tensor indices = Tensor::empty(rows.shape(1), {.dtype = DType::i64, .device = x.device()});
    kernels::topk(rows.of(x), {}, {}, Out(indices));
    const Tensor kept = rows.back(indices);
    return keepdim ? kept : kept.squeeze(dim);
  });
}

Tensor argmax(const Tensor& x) {
  require_floating("argmax", x);
  require(x.numel() > 0, "argmax: {} has no elements, and so no greatest one", x);
  return unrecorded([&] {
    const Tensor index = Tensor::empty({}, {.dtype = DType::i64, .device = x.device()});
    kernels::topk(x.contiguous().view({1, x.numel()}), {}, {}, Out(index.view({1, 1})));
    return index;
  });
}

Topk topk(const Tensor& x, std::int64_t k, int dim, bool largest, bool sorted) {
  check("topk", x);
  const Rows rows(x, dimension_of("topk", x, dim));
  require(k >= 0 && k <= rows.size(), "topk: {} elements of the {} along dimension {} of {}: k must be 0 to {}", k,
          rows.size(), dim, x, rows.size());
  const Tensor values = Tensor::empty(rows.shape(k), x.options());
  const Tensor indices = Tensor::empty(rows.shape(k), {.dtype = DType::i64, .device = x.device()});
  Topk result;
  unrecorded([&] {
    kernels::topk(rows.of(x), {.largest = largest, .sorted = sorted}, Out(values), Out(indices));
    result = {rows.back(values), rows.back(indices)};
  });
  result.values =
      record("topk", {x}, result.values, [rows, saved_indices = SavedTensor(indices)](const BackwardContext& context) {
        const Tensor grad = rows.of(context.grad_output());
        const bool direct = rows.keeps_order();
        const Tensor grad_x = direct ? context.new_gradient(0) : Tensor();
        const Tensor grad_rows = direct ? rows.of(grad_x) : Tensor::empty(rows.shape(rows.size()), grad.options());
        kernels::topk_backward(grad, saved_indices.get(), Out(grad_rows));
        return std::vector<Tensor>{direct ? grad_x : rows.back(grad_rows)};
      });
  return result;
}

}  // namespace tandem::autograd
