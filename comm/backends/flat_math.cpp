// Plain loops over flat memory; the compiler vectorises them.
#include "tandem/comm/backends/flat_math.h"

#include "tandem/comm/backends/combine.h"
#include "tandem/core/out.h"
#include "tandem/core/parallel.h"
#include "tandem/kernels/elementwise/scale.h"

namespace tandem::comm {

namespace {

template <typename T, typename Combine>
void combine(void* into, const void* from, std::int64_t count, bool from_is_left, Combine op) {
  T* __restrict a = static_cast<T*>(into);
  const T* __restrict b = static_cast<const T*>(from);
  if (from_is_left) {
    for (std::int64_t i = 0; i < count; ++i) a[i] = op(b[i], a[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) a[i] = op(a[i], b[i]);
  }
}

template <typename T>
void reduce_typed(void* into, const void* from, std::int64_t count, ReduceOp op, bool from_is_left) {
  visit_reduction<T>(op, [&](auto two) { combine<T>(into, from, count, from_is_left, two); });
}

constexpr std::int64_t kGrain = 1 << 15;

template <typename T, typename Map>
void map_in_place(void* data, std::int64_t count, Map map) {
  parallel_for(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    T* const values = static_cast<T*>(data);
    for (std::int64_t i = begin; i < end; ++i) values[i] = map(values[i]);
  });
}

}  // namespace

void reduce_into(void* into, const void* from, std::int64_t count, DType dtype, ReduceOp op, bool from_is_left) {
  switch (dtype) {
    case DType::f64:
      return reduce_typed<double>(into, from, count, op, from_is_left);
    case DType::f32:
      return reduce_typed<float>(into, from, count, op, from_is_left);
    case DType::i64:
      return reduce_typed<std::int64_t>(into, from, count, op, from_is_left);
    case DType::i32:
      return reduce_typed<std::int32_t>(into, from, count, op, from_is_left);
    default:
      fail("reduce: {} has no reduction here", name_of(dtype));
  }
}

void divide(void* data, std::int64_t count, DType dtype, int divisor) {
  if (divisor == 1) return;
  dispatch_floating(dtype, "divide", [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_in_place<T>(data, count, [divisor = static_cast<compute_t<T>>(divisor)](T value) {
      return T(static_cast<compute_t<T>>(value) / divisor);
    });
  });
}

void scale(const Tensor& tensor, double factor) {
  const Out out(tensor);
  if (tensor.device().type != DeviceType::cpu) return kernels::scale(tensor, factor, out);
  dispatch_floating(tensor.dtype(), "scale", [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_in_place<T>(out.raw_data(), tensor.numel(), [factor = static_cast<compute_t<T>>(factor)](T value) {
      return T(static_cast<compute_t<T>>(value) * factor);
    });
  });
}

void half_to_float(const void* from, DType from_dtype, float* to, std::int64_t count) {
  dispatch_floating(from_dtype, "half_to_float", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const values = static_cast<const T*>(from);
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(values[i]);
  });
}

void float_to_half(const float* from, void* to, DType to_dtype, std::int64_t count) {
  dispatch_floating(to_dtype, "float_to_half", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const values = static_cast<T*>(to);
    for (std::int64_t i = 0; i < count; ++i) values[i] = T(from[i]);
  });
}

}  // namespace tandem::comm
