// Sum over broadcast dimensions on the CPU, vectorised and threaded.
#include "tandem/kernels/elementwise/strided_loop.h"
#include "tandem/kernels/reduce/accumulator.h"
#include "tandem/kernels/reduce/lane_sum.h"
#include "tandem/kernels/reduce/sum_to_implementations.h"

#include <vector>

namespace tandem::kernels::cpu {

namespace {

/// to[i * to_step] += from[i * from_step]
template <typename T>
void add_run(const T* from, std::int64_t from_step, Accumulator<T>* to, std::int64_t to_step, std::int64_t length) {
  using Sum = Accumulator<T>;
  if constexpr (is_float<T> || std::is_integral_v<T>) {
    if (from_step == 1 && to_step == 1) {
      for (std::int64_t i = 0; i < length; ++i) to[i] += static_cast<Sum>(from[i]);
    } else {
      for (std::int64_t i = 0; i < length; ++i) to[i * to_step] += static_cast<Sum>(from[i * from_step]);
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
Accumulator<T> sum_of_run(const T* from, std::int64_t step, std::int64_t length) {
  if constexpr (std::is_integral_v<T>) {
    std::uint64_t sum = 0;
    add_run(from, step, &sum, 0, length);
    return sum;
  } else {
    return lane_sum(from, length, step);
  }
}

template <typename T>
void add_up(const Tensor& x, const Out& out) {
  const StridedLoop<2> loop(x.shape(), {x.strides(), out.tensor().expand(x.shape()).strides()});
  const std::int64_t x_step = loop.inner_strides()[0], out_step = loop.inner_strides()[1];
  const T* const values = x.data<T>();
  const std::int64_t count = out.numel();

  // Up to 8 parts of the runs, each with sums of its own that are then added in order: the same bits whatever the
  // number of threads. Parts only where they are much larger than the sums.
  const std::int64_t parts = std::clamp<std::int64_t>(x.numel() / std::max<std::int64_t>(4 * count, 1 << 14), 1, 8);
  std::vector<Accumulator<T>> sums(static_cast<std::size_t>(parts * count));
  parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      Accumulator<T>* const own = sums.data() + part * count;
      loop.for_runs(loop.runs() * part / parts, loop.runs() * (part + 1) / parts,
                    [&](const std::array<std::int64_t, 2>& at) {
                      if (out_step == 0)
                        own[at[1]] += sum_of_run(values + at[0], x_step, loop.length());
                      else
                        add_run(values + at[0], x_step, own + at[1], out_step, loop.length());
                    });
    }
  });
  SumResult<T>* const result = out.data<SumResult<T>>();
  for (std::int64_t i = 0; i < count; ++i) {
    Accumulator<T> sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) sum += sums[static_cast<std::size_t>(part * count + i)];
    if constexpr (std::is_integral_v<T>)
      result[i] = static_cast<std::int64_t>(sum);
    else
      result[i] = static_cast<T>(static_cast<float>(sum));
  }
}

}  // namespace

bool sum_to_supports(const Tensor& x) { return x.dtype() != DType::f64 && x.device().type == DeviceType::cpu; }

void sum_to(const Tensor& x, const Out& out) {
  dispatch_all(x.dtype(), "sum_to", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, double>) add_up<T>(x, out);
  });
}

}  // namespace tandem::kernels::cpu
