// One dimension of a tensor as rows. Internal to autograd/functions.
#pragma once

#include "tandem/core/tensor.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace tandem::autograd {

/// A tensor with one dimension as rows of numbers that follow each other, and back. The other dimensions come in the
/// order of their strides: no copy where a dense tensor has them so.
class Rows {
 public:
  /// `dim` in [0, rank).
  Rows(const Tensor& x, int dim) : dim_(dim), order_(static_cast<std::size_t>(x.rank())), back_(order_.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int a, int b) { return a != dim && (b == dim || x.stride(a) > x.stride(b)); });
    for (std::size_t i = 0; i < order_.size(); ++i) {
      back_[static_cast<std::size_t>(order_[i])] = static_cast<int>(i);
      shape_.push_back(x.size(order_[i]));
      if (order_[i] != dim) count_ *= x.size(order_[i]);
    }
  }

  /// Elements of a row.
  std::int64_t size() const { return shape_[-1]; }

  /// True if rows are the tensor itself, seen otherwise, wherever that is row-major.
  bool keeps_order() const { return std::is_sorted(order_.begin(), order_.end()); }

  /// The shape of rows of `size` elements.
  Shape shape(std::int64_t size) const { return {count_, size}; }

  /// [rows, elements along the dimension], dense; of x, or of what has another size there.
  Tensor of(const Tensor& x) const { return x.permute(order_).contiguous().view(shape(x.size(dim_))); }

  /// Rows of any size as a tensor with that size along the dimension: a view.
  Tensor back(const Tensor& rows) const {
    Shape moved = shape_;
    moved[-1] = rows.size(1);
    return rows.view(moved).permute(back_);
  }

 private:
  int dim_;
  std::vector<int> order_, back_;  // of dimensions, to rows and back
  Shape shape_;                    // of x, in that order
  std::int64_t count_ = 1;
};

}  // namespace tandem::autograd
