// Looking up rows on the CPU, threaded.
#include "tandem/core/parallel.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/embedding/embedding_implementations.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tandem::kernels::cpu {

namespace {

/// Rows that a thread takes at least.
std::int64_t rows_per_part(std::int64_t features) {
  return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, features));
}

/// The positions of each index, in order: those of `row` are positions[begin[row]] to positions[begin[row + 1]].
struct PositionsOfRows {
  std::vector<std::int64_t> begin, positions;

  PositionsOfRows(const Tensor& indices, std::int64_t rows)
      : begin(static_cast<std::size_t>(rows) + 1), positions(static_cast<std::size_t>(indices.size(0))) {
    const std::int64_t* const index = indices.data<std::int64_t>();
    const auto row_of = [&](std::int64_t n) { return static_cast<std::size_t>(index[n * indices.stride(0)]); };
    for (std::int64_t n = 0; n < indices.size(0); ++n) ++begin[row_of(n) + 1];
    for (std::size_t row = 1; row < begin.size(); ++row) begin[row] += begin[row - 1];
    std::vector<std::int64_t> next(begin.begin(), begin.end() - 1);
    for (std::int64_t n = 0; n < indices.size(0); ++n) positions[static_cast<std::size_t>(next[row_of(n)]++)] = n;
  }
};

}  // namespace

void embedding_forward(const Tensor& indices, const Tensor& weight, const Out& y) {
  const std::int64_t* const index = indices.data<std::int64_t>();
  const std::int64_t bytes = weight.size(1) * size_of(weight.dtype()), stride = indices.stride(0);
  if (bytes == 0) return;
  const auto* const from = static_cast<const std::byte*>(weight.raw_data());
  auto* const to = static_cast<std::byte*>(y.raw_data());
  parallel_for(indices.size(0), rows_per_part(weight.size(1)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n)
      std::memcpy(to + n * bytes, from + index[n * stride] * bytes, static_cast<std::size_t>(bytes));
  });
}

void embedding_backward(const Tensor& indices, const Tensor& grad_y, const Out& grad_weight) {
  const std::int64_t rows = grad_weight.size(0), features = grad_weight.size(1);
  if (grad_weight.numel() == 0) return;
  const PositionsOfRows of_rows(indices, rows);
  dispatch_float(grad_weight.dtype(), "embedding_backward", [&]<typename T>(TypeTag<T>) {
    const T* const from = grad_y.data<T>();
    T* const to = grad_weight.data<T>();
    parallel_for(rows, rows_per_part(features), [&](std::int64_t first, std::int64_t last) {
      RunReader<T> read(features);
      RunWriter<T> write(features);
      for (std::int64_t row = first; row < last; ++row) {
        write(to + row * features, features, [&](float* __restrict sums) {
          std::fill_n(sums, features, 0.0f);
          const auto at = static_cast<std::size_t>(row);
          for (std::int64_t i = of_rows.begin[at]; i < of_rows.begin[at + 1]; ++i) {
            const float* const gradient =
                read(from + of_rows.positions[static_cast<std::size_t>(i)] * features, features);
            for (std::int64_t d = 0; d < features; ++d) sums[d] += gradient[d];
          }
        });
      }
    });
  });
}

}  // namespace tandem::kernels::cpu
