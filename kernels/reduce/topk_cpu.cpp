// The largest or smallest elements of each row on the CPU, by keys that are whole numbers.
#include "tandem/core/parallel.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/reduce/rank_key.h"
#include "tandem/kernels/reduce/topk_implementations.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace tandem::kernels::cpu {

namespace {

/// Calls visit(key, i) for each element of a row; the loop has no branches, so that it becomes vector instructions.
template <typename T, typename Visit>
void for_each_key(const T* row, std::int64_t count, bool largest, Visit&& visit) {
  for (std::int64_t i = 0; i < count; ++i)
    visit(rank_key(static_cast<float>(row[i]), static_cast<std::uint32_t>(i), largest), i);
}

template <typename T>
std::uint64_t best_key(const T* row, std::int64_t count, bool largest) {
  std::uint64_t best = 0;
  for_each_key(row, count, largest, [&](std::uint64_t key, std::int64_t) { best = std::max(best, key); });
  return best;
}

/// The k best keys of a row come first in `keys`, in the order that was asked for.
template <typename T>
void select_keys(const T* row, std::int64_t k, const TopkOptions& options, std::vector<std::uint64_t>& keys) {
  const auto count = static_cast<std::int64_t>(keys.size());
  for_each_key(row, count, options.largest,
               [&](std::uint64_t key, std::int64_t i) { keys[static_cast<std::size_t>(i)] = key; });
  constexpr std::int64_t kWorthHeap = 8;  // elements to each of the best, from where on a heap of these is quicker
  const auto end = keys.begin() + k;
  if (k * kWorthHeap <= count) {
    std::partial_sort(keys.begin(), end, keys.end(), std::greater<>());
    if (options.sorted) return;
  } else if (k < count) {
    std::nth_element(keys.begin(), end, keys.end(), std::greater<>());
  }
  if (options.sorted) return std::sort(keys.begin(), end, std::greater<>());
  std::sort(keys.begin(), end, [](std::uint64_t x, std::uint64_t y) { return swap_halves(x) > swap_halves(y); });
}

}  // namespace

bool topk_supports(const Tensor& x) { return computes_in_float(x.dtype()); }

void topk(const Tensor& x, const TopkOptions& options, const Out& values, const Out& indices) {
  dispatch_float(x.dtype(), "topk", [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr std::int64_t kElementsPerPart = 1 << 13;
    const std::int64_t columns = x.size(1), k = indices.size(1);
    const T* const from = x.data<T>();
    T* const to = values.defined() ? values.data<T>() : nullptr;
    std::int64_t* const places = indices.data<std::int64_t>();
    parallel_for(x.size(0), kElementsPerPart / columns, [&](std::int64_t begin, std::int64_t end) {
      std::vector<std::uint64_t> keys(k > 1 ? static_cast<std::size_t>(columns) : 1);
      for (std::int64_t r = begin; r < end; ++r) {
        const T* const row = from + r * columns;
        if (k > 1) {
          select_keys(row, k, options, keys);
        } else {
          keys[0] = best_key(row, columns, options.largest);
        }
        for (std::int64_t j = 0; j < k; ++j) {
          const std::int64_t place = index_of(keys[static_cast<std::size_t>(j)]);
          places[r * k + j] = place;
          if (to != nullptr) to[r * k + j] = row[place];
        }
      }
    });
  });
}

}  // namespace tandem::kernels::cpu
