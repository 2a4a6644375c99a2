// Sum over broadcast dimensions on the CPU, vectorised and threaded.
#include "kernels/elementwise/strided_loop.h"
#include "kernels/reduce/lane_sum.h"
#include "kernels/reduce/sum_to.h"

#include <vector>

namespace tandem::kernels::cpu {

bool sum_to_supports(const Tensor& x, const Tensor&) {
  return x.dtype() == DType::f32 && x.device().type == DeviceType::cpu;
}

void sum_to(const Tensor& x, const Tensor& out) {
  const StridedLoop<2> loop(x.shape(), {x.strides(), out.expand(x.shape()).strides()});
  const auto [x_step, out_step] = loop.inner_strides();
  const float* const values = x.data<float>();
  const std::int64_t count = out.numel();

  // Up to 8 parts of the runs, each with f64 sums of its own that are then added in order: the same bits whatever the
  // number of threads. Parts only where they are much larger than the sums.
  const std::int64_t parts = std::clamp<std::int64_t>(x.numel() / std::max<std::int64_t>(4 * count, 1 << 14), 1, 8);
  std::vector<double> sums(static_cast<std::size_t>(parts * count));
  parallel_for(parts, 1, [&, x_step = x_step, out_step = out_step](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      double* const own = sums.data() + part * count;
      loop.for_runs(loop.runs() * part / parts, loop.runs() * (part + 1) / parts,
                    [&](const std::array<std::int64_t, 2>& at) {
                      const float* const from = values + at[0];
                      double* const to = own + at[1];
                      if (out_step == 0) {
                        *to += lane_sum(from, loop.length(), x_step);
                      } else if (x_step == 1 && out_step == 1) {
                        for (std::int64_t i = 0; i < loop.length(); ++i) to[i] += static_cast<double>(from[i]);
                      } else {
                        for (std::int64_t i = 0; i < loop.length(); ++i)
                          to[i * out_step] += static_cast<double>(from[i * x_step]);
                      }
                    });
    }
  });
  float* const result = out.data<float>();
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0.0;
    for (std::int64_t part = 0; part < parts; ++part) sum += sums[static_cast<std::size_t>(part * count + i)];
    result[i] = static_cast<float>(sum);
  }
}

}  // namespace tandem::kernels::cpu
