// Differentiable joining of tensors.
#include "tandem/autograd/functions/concat.h"

#include "tandem/autograd/functions/operand.h"
#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"

#include <algorithm>
#include <optional>

namespace tandem::autograd {

namespace {

/// Throws Error for no tensors, and for undefined ones or several dtypes or devices.
void check(std::string_view op, const std::vector<Tensor>& tensors) {
  require(!tensors.empty(), "{}: no tensors; give one or more", op);
  const Tensor& first = tensors.front();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    require(tensor.defined(), "{}: tensor {} of {} is undefined", op, i, tensors.size());
    require(tensor.dtype() == first.dtype() && tensor.device() == first.device(),
            "{}: tensor 0, {} on {}, and tensor {}, {} on {}, must have one dtype and one device; use cast or to", op,
            first, first.device(), i, tensor, tensor.device());
  }
}

/// Throws Error unless the shapes are one, but for dimension `dim` where there is such a one.
void check_shapes(std::string_view op, const std::vector<Tensor>& tensors, std::optional<int> dim) {
  const Tensor& first = tensors.front();
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    bool fits = tensors[i].rank() == first.rank();
    for (int d = 0; fits && d < first.rank(); ++d) fits = d == dim || tensors[i].size(d) == first.size(d);
    require(fits, "{}: tensor 0, {}, and tensor {}, {}, differ in {}; reshape or slice one", op, first, i, tensors[i],
            dim ? fmt::format("more than dimension {}", *dim) : std::string("shape"));
  }
}

/// How the result is stored: as images are, unless an input is row-major and nothing else.
Layout layout_for(const std::vector<Tensor>& tensors) {
  const bool plain = std::any_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) {
    return !tensor.is_dense(Layout::channels_last) && tensor.is_dense(Layout::row_major);
  });
  return plain ? Layout::row_major : Layout::channels_last;
}

/// Calls visit(i, start) for each tensor, with the sum of the sizes before it.
template <typename Visit>
void for_each_start(const std::vector<std::int64_t>& sizes, Visit&& visit) {
  std::int64_t start = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    visit(i, start);
    start += sizes[i];
  }
}

}  // namespace

Tensor concat(const std::vector<Tensor>& tensors, int requested) {
  check("concat", tensors);
  require(tensors.front().rank() >= 1, "concat: numbers ({}) have no dimension to be joined along; use stack",
          tensors.front());
  const int dim = dimension_of("concat", tensors.front(), requested);
  check_shapes("concat", tensors, dim);
  std::vector<std::int64_t> sizes;
  Shape shape = tensors.front().shape();
  shape[dim] = 0;
  for (const Tensor& tensor : tensors) {
    sizes.push_back(tensor.size(dim));
    shape[dim] += sizes.back();
  }
  const Tensor y = Tensor::empty(shape, tensors.front().options(layout_for(tensors)));
  unrecorded([&] {
    for_each_start(sizes, [&](std::size_t i, std::int64_t start) {
      if (tensors[i].numel() > 0) y.narrow(dim, start, sizes[i]).copy_from(tensors[i]);
    });
  });
  return record("concat", tensors, y, [dim, sizes](const BackwardContext& context) {
    std::vector<Tensor> gradients(sizes.size());
    for_each_start(sizes, [&](std::size_t i, std::int64_t start) {
      if (context.needs(i)) gradients[i] = context.grad_output().narrow(dim, start, sizes[i]);
    });
    return gradients;
  });
}

Tensor stack(const std::vector<Tensor>& tensors, int requested) {
  check("stack", tensors);
  check_shapes("stack", tensors, {});
  const int rank = tensors.front().rank();
  require(rank < kMaxRank, "stack: {} has {} dimensions already, the most that there can be", tensors.front(), rank);
  require(requested >= -rank - 1 && requested <= rank, "stack: dimension {} is out of range for tensors like {}",
          requested, tensors.front());
  const int dim = requested < 0 ? requested + rank + 1 : requested;
  Shape shape;
  for (int d = 0; d <= rank; ++d) {
    if (d == dim) shape.push_back(static_cast<std::int64_t>(tensors.size()));
    if (d < rank) shape.push_back(tensors.front().size(d));
  }
  const Tensor y = Tensor::empty(shape, tensors.front().options());
  unrecorded([&] {
    for (std::size_t i = 0; i < tensors.size(); ++i) y.select(dim, static_cast<std::int64_t>(i)).copy_from(tensors[i]);
  });
  return record("stack", tensors, y, [dim, count = tensors.size()](const BackwardContext& context) {
    std::vector<Tensor> gradients(count);
    for (std::size_t i = 0; i < count; ++i)
      if (context.needs(i)) gradients[i] = context.grad_output().select(dim, static_cast<std::int64_t>(i));
    return gradients;
  });
}

}  // namespace tandem::autograd
