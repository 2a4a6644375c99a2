// What functions ask of an operand. Internal to autograd/functions.
#pragma once

#include "tandem/core/describe.h"
#include "tandem/core/dtype_values.h"
#include "tandem/core/tensor.h"

#include <cmath>
#include <string_view>

namespace tandem::autograd {

/// Throws Error that names `op` unless there is a tensor.
inline void require_defined(std::string_view op, const Tensor& x) {
  require(x.defined(), "{}: needs a defined tensor, got {}", op, x);
}

/// Throws Error that names `op` unless there is a tensor of a floating dtype.
inline void require_floating(std::string_view op, const Tensor& x) {
  require_defined(op, x);
  require(is_floating(x.dtype()), "{}: needs a floating dtype (f64, f32, f16 or bf16), got {}; use cast", op, x);
}

/// `dim` of x as a number in [0, rank). Throws Error that names `op` where there is no tensor or no such dimension.
inline int dimension_of(std::string_view op, const Tensor& x, int dim) {
  require_defined(op, x);
  require(x.rank() > 0, "{}: {} has no dimensions", op, x);
  require(dim >= -x.rank() && dim < x.rank(), "{}: dimension {} is out of range for {}; give one from {} to {}", op,
          dim, x, -x.rank(), x.rank() - 1);
  return dim < 0 ? dim + x.rank() : dim;
}

/// The number as a tensor of no dimensions of x's dtype and device: rounded to a floating dtype. Throws Error that
/// names `op` where there is no tensor, its integers are never that number, or it may have been rounded already.
inline Tensor number_beside(std::string_view op, double number, const Tensor& x) {
  require_defined(op, x);
  if (!is_floating(x.dtype())) {
    require(std::abs(number) < 0x1p53 || x.dtype() != DType::i64,
            "{}: a double, as {}, is not every whole number from 2^53 on; give Tensor::from<std::int64_t>({{number}}, "
            "{{}}) beside {}",
            op, number, x);
    require(is_in_range(x.dtype(), number) && std::trunc(number) == number,
            "{}: {} is no number that {} has, which are whole ones from {}; give cast(x, DType::f32)", op, number, x,
            range_text(x.dtype()));
  }
  return Tensor::full({}, number, {.dtype = x.dtype(), .device = x.device()});
}

}  // namespace tandem::autograd
