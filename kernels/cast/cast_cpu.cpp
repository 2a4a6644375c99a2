// Copies between dtypes on the CPU, vectorised and threaded.
#include "tandem/core/parallel.h"
#include "tandem/kernels/cast/cast_implementations.h"
#include "tandem/kernels/cast/convert.h"
#include "tandem/kernels/cast/float_runs.h"

namespace tandem::kernels::cpu {

namespace {

template <typename From, typename To>
void convert_run(const From* from, To* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = convert<To>(from[i]);
}

template <typename From>
  requires is_half_type<From>
void convert_run(const From* from, float* to, std::int64_t count) {
  widen(from, count, to);
}

template <typename To>
  requires is_half_type<To>
void convert_run(const float* from, To* to, std::int64_t count) {
  round_floats(from, count, to);
}

}  // namespace

bool cast_supports(const Tensor& source, const Tensor& destination) {
  return source.device().type == DeviceType::cpu && source.is_dense() && source.strides() == destination.strides();
}

void cast(const Tensor& source, const Out& destination) {
  dispatch_all(source.dtype(), "cast", [&](auto from_tag) {
    dispatch_all(destination.dtype(), "cast", [&](auto to_tag) {
      using From = typename decltype(from_tag)::type;
      using To = typename decltype(to_tag)::type;
      const From* const from = source.data<From>();
      To* const to = destination.data<To>();
      parallel_for(source.numel(), std::int64_t{1} << 14,
                   [&](std::int64_t begin, std::int64_t end) { convert_run(from + begin, to + begin, end - begin); });
    });
  });
}

}  // namespace tandem::kernels::cpu
