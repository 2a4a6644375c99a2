// What elements are added up in.
#pragma once

#include <cstdint>
#include <type_traits>

namespace tandem::kernels {

/// f64 for floating elements; of integers 64 bits without a sign, which wrap around where those of i64 may not.
template <typename T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

/// What sums of elements of T are in tensors: before they are rounded, and as results.
template <typename T>
using PartialSum = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
template <typename T>
using SumResult = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;

}  // namespace tandem::kernels
