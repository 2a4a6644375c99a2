// Sum over broadcast dimensions on the CPU, vectorised and threaded.
#include "tandem/kernels/elementwise/strided_loop.h"
#include "tandem/kernels/reduce/lane_sum.h"
#include "tandem/kernels/reduce/sum_to_implementations.h"

#include <vector>

namespace tandem::kernels::cpu {

namespace {

/// to[i * to_step] += from[i * from_step], in f64
template <typename T>
void add_run(const T* from, std::int64_t from_step, double* to, std::int64_t to_step, std::int64_t length) {
  if constexpr (is_float<T>) {
    if (from_step == 1 && to_step == 1) {
      for (std::int64_t i = 0; i < length; ++i) to[i] += static_cast<double>(from[i]);
    } else {
      for (std::int64_t i = 0; i < length; ++i) to[i * to_step] += static_cast<double>(from[i * from_step]);
    }
  } else {
    for_each_block(length, [&](std::int64_t at, std::int64_t count) {
      float values[kBlock];
      widen(from + at * from_step, from_step, count, values);
      add_run(values, 1, to + at * to_step, to_step, count);
    });
  }
}

template <typename T>
void add_up(const Tensor& x, const Out& out) {
  const StridedLoop<2> loop(x.shape(), {x.strides(), out.tensor().expand(x.shape()).strides()});
  const std::int64_t x_step = loop.inner_strides()[0], out_step = loop.inner_strides()[1];
  const T* const values = x.data<T>();
  const std::int64_t count = out.numel();

  // Up to 8 parts of the runs, each with f64 sums of its own that are then added in order: the same bits whatever the
  // number of threads. Parts only where they are much larger than the sums.
  const std::int64_t parts = std::clamp<std::int64_t>(x.numel() / std::max<std::int64_t>(4 * count, 1 << 14), 1, 8);
  std::vector<double> sums(static_cast<std::size_t>(parts * count));
  parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      double* const own = sums.data() + part * count;
      loop.for_runs(loop.runs() * part / parts, loop.runs() * (part + 1) / parts,
                    [&](const std::array<std::int64_t, 2>& at) {
                      if (out_step == 0)
                        own[at[1]] += lane_sum(values + at[0], loop.length(), x_step);
                      else
                        add_run(values + at[0], x_step, own + at[1], out_step, loop.length());
                    });
    }
  });
  T* const result = out.data<T>();
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0.0;
    for (std::int64_t part = 0; part < parts; ++part) sum += sums[static_cast<std::size_t>(part * count + i)];
    result[i] = static_cast<T>(static_cast<float>(sum));
  }
}

}  // namespace

bool sum_to_supports(const Tensor& x) { return computes_in_float(x.dtype()) && x.device().type == DeviceType::cpu; }

void sum_to(const Tensor& x, const Out& out) {
  dispatch_float(x.dtype(), "sum_to", [&](auto tag) { add_up<typename decltype(tag)::type>(x, out); });
}

}  // namespace tandem::kernels::cpu
