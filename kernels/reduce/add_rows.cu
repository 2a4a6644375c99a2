// Sums of rows on CUDA: a thread adds one vector of columns.
#include "tandem/kernels/reduce/add_rows_implementations.h"

#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/vector.h"

namespace tandem::kernels::cuda {

namespace {

/// Rows of `vectors` vectors of kWidth elements.
template <int kWidth, typename T>
__global__ void add_row_vectors(const T* rows, std::int64_t row_count, std::int64_t vectors, float divisor, T* sum) {
  for (std::int64_t i = device::thread_in_grid(); i < vectors; i += device::threads_in_grid()) {
    const auto first = device::load_vector<kWidth>(rows + i * kWidth);
    float total[kWidth];
#pragma unroll
    for (int k = 0; k < kWidth; ++k) total[k] = device::to_float(first[k]);
#pragma unroll 4
    for (std::int64_t row = 1; row < row_count; ++row) {
      const auto values = device::load_vector<kWidth>(rows + (row * vectors + i) * kWidth);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) total[k] += device::to_float(values[k]);
    }
    device::Vector<T, kWidth> result;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) result[k] = device::from_float<T>(total[k] / divisor);
    device::store_vector(sum + i * kWidth, result);
  }
}

template <int kWidth, typename T>
void launch_add_rows(const Tensor& rows, double divisor, const Out& sum) {
  const std::int64_t vectors = rows.size(1) / kWidth;
  launch(add_row_vectors<kWidth, T>, {device::blocks_for(vectors, device::kThreadsPerBlock), device::kThreadsPerBlock},
         tandem::cuda::current_stream(sum), static_cast<const T*>(rows.data<T>()), rows.size(0), vectors,
         static_cast<float>(divisor), sum.data<T>());
}

}  // namespace

void add_rows(const Tensor& rows, double divisor, const Out& sum) {
  device::dispatch(rows.dtype(), "add_rows", [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int kWidth = device::kVectorWidth<T>;
    if (rows.size(1) == 0) return;
    const bool vectors = rows.size(1) % kWidth == 0 && device::aligned_for_vectors(rows.data<T>(), sum.data<T>());
    return vectors ? launch_add_rows<kWidth, T>(rows, divisor, sum) : launch_add_rows<1, T>(rows, divisor, sum);
  });
}

}  // namespace tandem::kernels::cuda
