// Comparisons on the CPU, vectorised and threaded.
#include "tandem/kernels/elementwise/compare_implementations.h"
#include "tandem/kernels/elementwise/float_loop.h"
#include "tandem/kernels/elementwise/map.h"

namespace tandem::kernels::cpu {

namespace {

using Run = void (*)(const float* a, const float* b, std::uint8_t* out, std::int64_t count);

template <typename Holds>
void compare_run(const float* a, const float* b, std::uint8_t* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(Holds{}(a[i], b[i]));
}

}  // namespace

bool compare_supports(const Tensor& a) { return map_supports(a); }

void compare(std::string_view op, Comparison comparison, const Tensor& a, const Tensor& b, const Out& out) {
  const Run run = visit_comparison(comparison, [](auto holds) -> Run { return &compare_run<decltype(holds)>; });
  const StridedLoop<3> loop(out.shape(), {out.strides(), a.strides(), b.strides()});
  const auto& steps = loop.inner_strides();
  dispatch_float(a.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    loop.parallel_runs([&](const std::array<std::int64_t, 3>& at, std::int64_t length) {
      const T *const from_a = a.data<T>() + at[1], *const from_b = b.data<T>() + at[2];
      std::uint8_t* const to = out.data<std::uint8_t>() + at[0];  // which is dense
      alignas(64) float left[kBlock], right[kBlock];
      for_each_block(length, [&](std::int64_t begin, std::int64_t count) {
        run(detail::dense_floats(from_a + begin * steps[1], steps[1], count, left),
            detail::dense_floats(from_b + begin * steps[2], steps[2], count, right), to + begin, count);
      });
    });
  });
}

}  // namespace tandem::kernels::cpu
