// From a dtype to an instance of a kernel template.
#pragma once

#include "tandem/core/dtype.h"

#include <cstdint>
#include <string_view>

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

/// The same for kernels that only look at elements or move them: i64, i32 and u8 as well.
template <typename Visitor>
decltype(auto) dispatch_with_integers(DType dtype, std::string_view op, Visitor&& visit) {
  switch (dtype) {
    case DType::i64:
      return visit(TypeTag<std::int64_t>{});
    case DType::i32:
      return visit(TypeTag<std::int32_t>{});
    case DType::u8:
      return visit(TypeTag<std::uint8_t>{});
    default:
      return dispatch(dtype, op, visit);
  }
}

}  // namespace tandem::device
