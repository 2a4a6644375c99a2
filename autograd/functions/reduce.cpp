// Differentiable sums and means.
#include "tandem/autograd/functions/reduce.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/functions/operand.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/kernels/elementwise/scale.h"
#include "tandem/kernels/reduce/sum.h"
#include "tandem/kernels/reduce/sum_to.h"

#include <array>

namespace tandem::autograd {

namespace {

/// What is left of a shape without some dimensions.
struct Reduced {
  Shape whole;             // as it was
  Shape kept;              // with sizes of 1 for what is summed up
  Shape removed;           // without these
  std::int64_t terms = 1;  // of each sum

  Reduced(std::string_view op, const Tensor& x, const std::vector<int>& dims) : whole(x.shape()), kept(x.shape()) {
    require(!dims.empty(), "{}: no dimensions of {} are named; give one or more, or call {}(x) for all", op, x, op);
    std::array<bool, kMaxRank> is_summed{};
    for (const int requested : dims) {
      const int dim = dimension_of(op, x, requested);
      bool& summed = is_summed[static_cast<std::size_t>(dim)];
      require(!summed, "{}: dimension {} of {} is named twice", op, requested, x);
      summed = true;
      terms *= x.size(dim);
      kept[dim] = 1;
    }
    for (int dim = 0; dim < x.rank(); ++dim)
      if (!is_summed[static_cast<std::size_t>(dim)]) removed.push_back(x.size(dim));
  }
};

/// In the shape `kept`, which expands to that of x; seen in that of `result`.
Tensor sum_of_integers(const Tensor& x, const Shape& kept, const Shape& result) {
  return unrecorded([&] {
    const Tensor sums = Tensor::empty(kept, {.dtype = DType::i64, .device = x.device()});
    kernels::sum_to(x, Out(sums));
    return sums.view(result);
  });
}

/// factor times the sums along dimensions. The factor is 1, or that of a mean.
Tensor sum_along(std::string_view op, const Tensor& input, const std::vector<int>& dims, bool keepdim, bool is_mean) {
  require_defined(op, input);
  if (is_mean) require_floating(op, input);
  const Reduced shapes(op, input, dims);
  if (!is_floating(input.dtype())) return sum_of_integers(input, shapes.kept, keepdim ? shapes.kept : shapes.removed);
  const double factor = is_mean ? 1.0 / static_cast<double>(shapes.terms) : 1.0;
  const Tensor x = cast(input, result_dtype(OpKind::reduction, input.dtype()));
  const Tensor sums = Tensor::empty(shapes.kept, x.options());
  const Tensor y = unrecorded([&] {
    kernels::sum_to(x, Out(sums));
    if (is_mean) kernels::scale(sums, factor, Out(sums));
    return sums.view(keepdim ? shapes.kept : shapes.removed);
  });
  return record(op, {x}, y, [shapes, is_mean, factor](const BackwardContext& context) {
    Tensor each = context.grad_output().contiguous().view(shapes.kept);
    if (is_mean) {
      const Tensor scaled = empty_like(each);
      kernels::scale(each, factor, Out(scaled));
      each = scaled;
    }
    return std::vector<Tensor>{each.expand(shapes.whole)};
  });
}

}  // namespace

Tensor sum(const Tensor& x, const std::vector<int>& dims, bool keepdim) {
  return sum_along("sum", x, dims, keepdim, false);
}

Tensor mean(const Tensor& x, const std::vector<int>& dims, bool keepdim) {
  return sum_along("mean", x, dims, keepdim, true);
}

Tensor sum(const Tensor& input) {
  require_defined("sum", input);
  if (!is_floating(input.dtype())) return sum_of_integers(input, {}, {});
  const Tensor x = cast(input, result_dtype(OpKind::reduction, input.dtype()));
  const Tensor y = Tensor::empty({}, x.options());
  unrecorded([&] { kernels::sum(x, Out(y)); });
  return record("sum", {x}, y, [shape = x.shape()](const BackwardContext& context) {
    return std::vector<Tensor>{context.grad_output().expand(shape)};
  });
}

Tensor mean(const Tensor& input) {
  require_defined("mean", input);
  const Tensor x = cast(input, result_dtype(OpKind::reduction, input.dtype()));
  const Tensor y = Tensor::empty({}, x.options());
  unrecorded([&] { kernels::mean(x, Out(y)); });
  return record("mean", {x}, y, [shape = x.shape()](const BackwardContext& context) {
    const Tensor each = empty_like(context.grad_output());
    kernels::scale(context.grad_output(), 1.0 / static_cast<double>(element_count(shape)), Out(each));
    return std::vector<Tensor>{each.expand(shape)};
  });
}

}  // namespace tandem::autograd
