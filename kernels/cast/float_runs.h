// Half storage in loops over floats: runs of elements widened to floats, and rounded back.
#pragma once

#include "tandem/core/dtype.h"
#include "tandem/kernels/cast/half_vector.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tandem::kernels::cpu {

/// True for the dtypes that fast CPU kernels take: those whose arithmetic is in float.
constexpr bool computes_in_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

/// Calls `visit(TypeTag<T>{})` with the C++ type of a dtype for which computes_in_float is true.
template <typename Visitor>
decltype(auto) dispatch_float(DType dtype, std::string_view op, Visitor&& visit) {
  switch (dtype) {
    case DType::f32:
      return visit(TypeTag<float>{});
    case DType::f16:
      return visit(TypeTag<Half>{});
    case DType::bf16:
      return visit(TypeTag<BFloat16>{});
    default:
      fail("{}: the fast loops take f32, f16 and bf16, got {}", op, name_of(dtype));
  }
}

template <typename T>
inline constexpr bool is_float = std::is_same_v<T, float>;

/// Elements that a loop widens, works on and rounds back at a time: their floats stay in the L1 cache.
inline constexpr std::int64_t kBlock = 512;

/// to[i] = from[i]
template <typename T>
inline void widen(const T* from, std::int64_t count, float* to) {
  const std::int64_t whole = count / simd::kLanes * simd::kLanes;
  for (std::int64_t i = 0; i < whole; i += simd::kLanes) simd::store(to + i, simd::load(from + i));
  for (std::int64_t i = whole; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

/// to[i] = from[i], rounded to nearest even.
template <typename T>
inline void round_floats(const float* from, std::int64_t count, T* to) {
  const std::int64_t whole = count / simd::kLanes * simd::kLanes;
  for (std::int64_t i = 0; i < whole; i += simd::kLanes) simd::store(to + i, simd::load(from + i));
  for (std::int64_t i = whole; i < count; ++i) to[i] = static_cast<T>(from[i]);
}

/// to[i] = from[i * step]
template <typename T>
inline void widen(const T* from, std::int64_t step, std::int64_t count, float* to) {
  if (step == 1) return widen(from, count, to);
  if (step == 0) return static_cast<void>(std::fill_n(to, count, static_cast<float>(*from)));
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i * step]);
}

/// to[i * step] = from[i], rounded to nearest even.
template <typename T>
inline void round_floats(const float* from, std::int64_t count, T* to, std::int64_t step) {
  if (step == 1) return round_floats(from, count, to);
  for (std::int64_t i = 0; i < count; ++i) to[i * step] = static_cast<T>(from[i]);
}

/// Runs of up to `longest` elements as floats to read: those in place of T float, else a widened copy in a buffer that
/// the next run overwrites.
template <typename T>
class RunReader {
 public:
  explicit RunReader(std::int64_t longest) : buffer_(is_float<T> ? 0 : static_cast<std::size_t>(longest)) {}

  const float* operator()(const T* from, std::int64_t count) {
    if constexpr (is_float<T>) {
      return from;
    } else {
      widen(from, count, buffer_.data());
      return buffer_.data();
    }
  }

 private:
  std::vector<float> buffer_;
};

/// The same to write: what `write(float*)` leaves in the run goes to `to`.
template <typename T>
class RunWriter {
 public:
  explicit RunWriter(std::int64_t longest) : buffer_(is_float<T> ? 0 : static_cast<std::size_t>(longest)) {}

  template <typename Write>
  void operator()(T* to, std::int64_t count, Write&& write) {
    if constexpr (is_float<T>) {
      write(to);
    } else {
      write(buffer_.data());
      round_floats(buffer_.data(), count, to);
    }
  }

 private:
  std::vector<float> buffer_;
};

/// Calls visit(begin, length) for [0, count) in pieces of kBlock.
template <typename Visit>
inline void for_each_block(std::int64_t count, Visit&& visit) {
  for (std::int64_t begin = 0; begin < count; begin += kBlock) visit(begin, std::min(kBlock, count - begin));
}

}  // namespace tandem::kernels::cpu
