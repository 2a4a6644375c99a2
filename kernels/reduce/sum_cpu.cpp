// Sum and mean on the CPU, vectorised and threaded.
#include "tandem/kernels/elementwise/strided_loop.h"
#include "tandem/kernels/reduce/lane_sum.h"
#include "tandem/kernels/reduce/sum_implementations.h"

#include <numeric>
#include <vector>

namespace tandem::kernels::cpu {

namespace {

/// Parts of a fixed size, each added up by one thread and then in order: the same bits whatever the number of threads.
template <typename PartSum>
double sum_of_parts(std::int64_t count, std::int64_t part, PartSum&& part_sum) {
  std::vector<double> sums(static_cast<std::size_t>((count + part - 1) / part));
  parallel_for(static_cast<std::int64_t>(sums.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      sums[static_cast<std::size_t>(i)] = part_sum(i * part, std::min(count, (i + 1) * part));
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

template <typename T>
double total_of(const Tensor& x) {
  constexpr std::int64_t kPart = std::int64_t{1} << 15;
  const T* const data = x.data<T>();
  const StridedLoop<1> loop(x.shape(), {x.strides()});
  const std::int64_t step = loop.inner_strides()[0];
  if (loop.runs() == 1) {
    return sum_of_parts(loop.length(), kPart, [&](std::int64_t begin, std::int64_t end) {
      return lane_sum(data + begin * step, end - begin, step);
    });
  }
  const std::int64_t runs_per_part = std::max<std::int64_t>(1, kPart / std::max<std::int64_t>(1, loop.length()));
  return sum_of_parts(loop.runs(), runs_per_part, [&](std::int64_t begin, std::int64_t end) {
    double sum = 0.0;
    loop.for_runs(begin, end,
                  [&](const std::array<std::int64_t, 1>& at) { sum += lane_sum(data + at[0], loop.length(), step); });
    return sum;
  });
}

double total(const Tensor& x) {
  return dispatch_float(x.dtype(), "sum", [&](auto tag) { return total_of<typename decltype(tag)::type>(x); });
}

}  // namespace

bool sum_supports(const Tensor& x) { return computes_in_float(x.dtype()) && x.device().type == DeviceType::cpu; }

void sum(const Tensor& x, const Out& out) { out.fill(total(x)); }

void mean(const Tensor& x, const Out& out) { out.fill(total(x) / static_cast<double>(x.numel())); }

}  // namespace tandem::kernels::cpu
