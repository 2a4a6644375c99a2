// Comparisons on the CPU, vectorised and threaded.
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/elementwise/compare_implementations.h"
#include "tandem/kernels/elementwise/dense_run.h"
#include "tandem/kernels/elementwise/strided_loop.h"

namespace tandem::kernels::cpu {

namespace {

template <typename Holds, typename T>
void compare_run(const T* a, const T* b, std::uint8_t* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(Holds{}(a[i], b[i]));
}

}  // namespace

void compare(std::string_view op, Comparison comparison, const Tensor& a, const Tensor& b, const Out& out) {
  const StridedLoop<3> loop(out.shape(), {out.strides(), a.strides(), b.strides()});
  const auto& steps = loop.inner_strides();
  dispatch_all(a.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    using Run = void (*)(const C* a, const C* b, std::uint8_t* out, std::int64_t count);
    const Run run = visit_comparison(comparison, [](auto holds) -> Run { return &compare_run<decltype(holds), C>; });
    loop.parallel_runs([&](const std::array<std::int64_t, 3>& at, std::int64_t length) {
      const T *const from_a = a.data<T>() + at[1], *const from_b = b.data<T>() + at[2];
      std::uint8_t* const to = out.data<std::uint8_t>() + at[0];  // which is dense
      alignas(64) C left[kBlock], right[kBlock];
      const DenseRun<T, C> run_a(from_a, steps[1], length, left), run_b(from_b, steps[2], length, right);
      for_each_block(length, [&](std::int64_t begin, std::int64_t count) {
        run(run_a.block(begin, count), run_b.block(begin, count), to + begin, count);
      });
    });
  });
}

}  // namespace tandem::kernels::cpu
