// From a dtype to an instance of a kernel template.
#pragma once

#include "tandem/core/dtype.h"

namespace tandem::device {

/// Calls `visit(TypeTag<T>{})` with the C++ type of a dtype that kernels come in: f32, f16, bf16. Throws Error for
/// others.
template <typename Visitor>
decltype(auto) dispatch(DType dtype, std::string_view op, Visitor&& visit) {
  switch (dtype) {
    case DType::f32:
      return visit(TypeTag<float>{});
    case DType::f16:
      return visit(TypeTag<Half>{});
    case DType::bf16:
      return visit(TypeTag<BFloat16>{});
    default:
      fail("{}: CUDA kernels take f32, f16 and bf16, got {}; use the CPU for it", op, name_of(dtype));
  }
}

}  // namespace tandem::device
