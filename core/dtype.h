// Element types, their C++ types, and run-time dispatch to templates.
// Example:
//     #include "tandem/core/out.h"
//     void halve(const Out& x) {
//       dispatch_floating(x.dtype(), "halve", [&](auto tag) {
//         using T = typename decltype(tag)::type;
//         for (std::int64_t i = 0; i < x.numel(); ++i) x.data<T>()[i] = T(x.data<T>()[i] / 2);
//       });
//     }
//     const Tensor x = Tensor::full({2}, 3.0, {.dtype = DType::bf16});
//     halve(Out(x));
//     const double first = x.select(0, 0).item();  // 1.5
#pragma once

#include "tandem/core/error.h"
#include "tandem/core/half.h"

#include <cstdint>
#include <string_view>

namespace tandem {

/// Types of elements: binary floating numbers, signed integers, and bytes.
enum class DType : std::uint8_t { f64, f32, f16, bf16, i64, i32, u8 };

/// How many dtypes there are; they count from 0.
constexpr int kDTypeCount = 7;

/// Bytes of an element.
constexpr std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

/// As messages have it: "f32".
constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "f64";
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i64:
      return "i64";
    case DType::i32:
      return "i32";
    case DType::u8:
      return "u8";
  }
  return "unknown dtype";
}

/// True of f64, f32, f16 and bf16.
constexpr bool is_floating(DType dtype) { return static_cast<int>(dtype) <= static_cast<int>(DType::bf16); }

/// True of f16 and bf16.
constexpr bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

namespace detail {
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<Half> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};

template <typename T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<Half> {
  using type = float;
};
template <>
struct ComputeType<BFloat16> {
  using type = float;
};
}  // namespace detail

/// The DType of a C++ element type.
template <typename T>
inline constexpr DType dtype_of = detail::DTypeOf<T>::value;

/// The type in which values stored as T are computed: float for the half types, T itself otherwise.
template <typename T>
using compute_t = typename detail::ComputeType<T>::type;

/// Stands for a C++ type as a function argument: `using T = typename decltype(tag)::type;`.
template <typename T>
struct TypeTag {
  using type = T;  ///< the type that it stands for
};

/// Returns `visit(TypeTag<T>{})` for the C++ type T of a floating `dtype`; visit() must return one type for all. Throws
/// Error, which begins with `where`, for an integer dtype.
template <typename Visitor>
decltype(auto) dispatch_floating(DType dtype, std::string_view where, Visitor&& visit) {
  switch (dtype) {
    case DType::f64:
      return visit(TypeTag<double>{});
    case DType::f32:
      return visit(TypeTag<float>{});
    case DType::f16:
      return visit(TypeTag<Half>{});
    case DType::bf16:
      return visit(TypeTag<BFloat16>{});
    default:
      fail("{}: needs a floating dtype (f64, f32, f16 or bf16), got {}", where, name_of(dtype));
  }
}

/// The same of any `dtype`.
template <typename Visitor>
decltype(auto) dispatch_all(DType dtype, std::string_view where, Visitor&& visit) {
  switch (dtype) {
    case DType::i64:
      return visit(TypeTag<std::int64_t>{});
    case DType::i32:
      return visit(TypeTag<std::int32_t>{});
    case DType::u8:
      return visit(TypeTag<std::uint8_t>{});
    default:
      return dispatch_floating(dtype, where, visit);
  }
}

}  // namespace tandem
