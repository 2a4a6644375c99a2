// Differentiable parts of a tensor along one dimension.
#include "tandem/autograd/functions/slice.h"

#include "tandem/autograd/functions/operand.h"
#include "tandem/autograd/functions/shape.h"
#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace tandem::autograd {

Tensor slice(const Tensor& x, int dim, std::int64_t start, std::int64_t end, std::int64_t step) {
  dimension_of("slice", x, dim);
  require(step > 0, "slice: step {} along dimension {} of {} must be positive; reversed slices are not views", step,
          dim, x);
  const std::int64_t size = x.size(dim);
  const auto place = [size](std::int64_t index) {
    return std::clamp<std::int64_t>(index < 0 ? index + size : index, 0, size);
  };
  const std::int64_t first = place(start), length = std::max<std::int64_t>(place(end) - first, 0);
  return narrow(x, dim, first, length / step + (length % step != 0), step);
}

std::vector<Tensor> split(const Tensor& x, std::int64_t size, int dim) {
  dimension_of("split", x, dim);
  require(size > 0, "split: parts of {} elements along dimension {} of {}: the size must be positive", size, dim, x);
  const std::int64_t whole = x.size(dim);
  std::vector<std::int64_t> sizes;
  for (std::int64_t start = 0; start < whole; start += std::min(size, whole - start))
    sizes.push_back(std::min(size, whole - start));
  if (sizes.empty()) sizes.push_back(0);
  return split(x, sizes, dim);
}

std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, int dim) {
  dimension_of("split", x, dim);
  require(!sizes.empty(), "split: {} into no parts: give one size or more", x);
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) {
    require(size >= 0 && size <= x.size(dim) - total,
            "split: sizes {} do not add up to the {} elements of dimension {} of {}", fmt::join(sizes, ", "),
            x.size(dim), dim, x);
    total += size;
  }
  require(total == x.size(dim), "split: sizes {} do not add up to the {} elements of dimension {} of {}",
          fmt::join(sizes, ", "), x.size(dim), dim, x);
  std::vector<Tensor> parts;
  unrecorded([&] {
    std::int64_t start = 0;
    for (const std::int64_t size : sizes) {
      parts.push_back(x.narrow(dim, start, size));
      start += size;
    }
  });
  return record("split", {x}, std::move(parts), [sizes, dim, shape = x.shape()](const BackwardContext& context) {
    const Tensor grad_x = context.new_gradient(0, Layout::channels_last);
    std::int64_t start = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const Tensor part = grad_x.narrow(dim, start, sizes[i]);
      if (context.grad_output(i).defined()) {
        part.copy_from(context.grad_output(i));
      } else {
        part.zero();
      }
      start += sizes[i];
    }
    return std::vector<Tensor>{grad_x};
  });
}

}  // namespace tandem::autograd
