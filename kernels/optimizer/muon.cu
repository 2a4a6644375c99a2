// Muon on a GPU: what its kernels are given of the items goes by value, so that no step depends on the one before.
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/reduce.h"
#include "tandem/kernels/device/vector.h"
#include "tandem/kernels/optimizer/muon_implementations.h"
#include "tandem/kernels/optimizer/update.cuh"

#include <cmath>

namespace tandem::kernels::cuda {

namespace {

/// An item. What is absent is null: a momentum buffer, a master.
struct MuonEntry {
  void* parameter;
  const void* gradient;
  float *master, *buffer, *direction;
  void* matrix;
  std::int64_t count, first_part;
  float root;  // of its number of rows
  DType dtype, gradient_dtype, matrix_dtype;
  bool load_buffer;  // false: it holds nothing yet and reads as 0
  bool vectors;      // all addresses are multiples of 16
};

constexpr int kMostEntries = 24;

struct MuonTable {
  MuonEntry entries[kMostEntries];
  int count;
};

static_assert(kMuonPart == kChunkElements, "a block has a part");

/// What a block works on: a part of an item.
struct BlockPart {
  int entry;
  std::int64_t number;  // over all items
  Chunk chunk;
};

/// Parts of a table follow each other, from that of its first item on.
__device__ BlockPart find_part(const MuonTable& table) {
  const std::int64_t number = table.entries[0].first_part + blockIdx.x;
  int entry = 0;
  while (entry + 1 < table.count && table.entries[entry + 1].first_part <= number) ++entry;
  const std::int64_t begin = (number - table.entries[entry].first_part) * kMuonPart;
  return {entry, number, {entry, begin, min(begin + kMuonPart, table.entries[entry].count)}};
}

/// kWidth elements of any dtype.
template <int kWidth>
__device__ device::Vector<float, kWidth> load_any(const void* data, DType dtype, std::int64_t i) {
  if (dtype == DType::f32) return load_floats<kWidth>(static_cast<const float*>(data) + i);
  if (dtype == DType::f16) return load_floats<kWidth>(static_cast<const Half*>(data) + i);
  return load_floats<kWidth>(static_cast<const BFloat16*>(data) + i);
}

template <typename T, int kWidth>
__device__ void store_rounded(void* data, std::int64_t i, const device::Vector<float, kWidth>& values) {
  device::Vector<T, kWidth> rounded;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) rounded[k] = device::from_float<T>(values[k]);
  device::store_vector(static_cast<T*>(data) + i, rounded);
}

template <int kWidth>
__device__ void store_any(void* data, DType dtype, std::int64_t i, const device::Vector<float, kWidth>& values) {
  if (dtype == DType::f32) return store_rounded<float>(data, i, values);
  if (dtype == DType::f16) return store_rounded<Half>(data, i, values);
  store_rounded<BFloat16>(data, i, values);
}

/// The parameter as it is stepped.
template <int kWidth>
__device__ device::Vector<float, kWidth> load_weight(const MuonEntry& entry, std::int64_t i) {
  if (entry.master != nullptr) return load_floats<kWidth>(entry.master + i);
  return load_any<kWidth>(entry.parameter, entry.dtype, i);
}

/// An item's sum in that column, in the same order everywhere; all threads call it.
__device__ double sum_of_parts(const MuonEntry& entry, const double* squares, int column) {
  const std::int64_t parts = (entry.count + kMuonPart - 1) / kMuonPart;
  double sum = 0.0;
  for (std::int64_t i = threadIdx.x; i < parts; i += kListThreads) sum += squares[2 * (entry.first_part + i) + column];
  return device::block_sum<kListThreads>(sum);
}

__global__ void muon_momentum(MuonTable table, FactorsView factors, bool nesterov, bool normalize, double* squares,
                              const std::int32_t* skip) {
  const BlockPart part = find_part(table);
  const MuonEntry entry = table.entries[part.entry];
  const StepFactors step = factors_of(factors);
  const auto momentum = static_cast<float>(step.momentum), factor = static_cast<float>(step.gradient_factor);
  const bool skipped = is_skipped(skip);
  double of_direction = 0.0, of_weight = 0.0;
  for_each_of_chunk(part.chunk, entry.vectors, [&](std::int64_t i, auto width) {
    constexpr int kWidth = width;
    device::Vector<float, kWidth> direction{};
    if (!skipped) {
      const auto gradient = load_any<kWidth>(entry.gradient, entry.gradient_dtype, i);
      device::Vector<float, kWidth> buffer{};
      if (entry.buffer != nullptr && entry.load_buffer) buffer = load_floats<kWidth>(entry.buffer + i);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        const float g = factor * gradient[k];
        direction[k] = g;
        if (entry.buffer == nullptr) continue;
        buffer[k] = momentum * buffer[k] + g;
        direction[k] = nesterov ? g + momentum * buffer[k] : buffer[k];
      }
      if (entry.buffer != nullptr) device::store_vector(entry.buffer + i, buffer);
    }
    device::store_vector(entry.direction + i, direction);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) of_direction += static_cast<double>(direction[k]) * direction[k];
    if (skipped || !normalize) return;
    const auto weight = load_weight<kWidth>(entry, i);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) of_weight += static_cast<double>(weight[k]) * weight[k];
  });
  of_direction = device::block_sum<kListThreads>(of_direction);
  of_weight = device::block_sum<kListThreads>(of_weight);
  if (threadIdx.x != 0) return;
  squares[2 * part.number] = of_direction;
  squares[2 * part.number + 1] = of_weight;
}

__global__ void muon_divide(MuonTable table, double eps, const double* squares) {
  const BlockPart part = find_part(table);
  const MuonEntry entry = table.entries[part.entry];
  const double sum = sum_of_parts(entry, squares, 0);
  const auto norm = static_cast<float>(sqrt(sum) + eps);
  for_each_of_chunk(part.chunk, entry.vectors, [&](std::int64_t i, auto width) {
    constexpr int kWidth = width;
    auto values = load_floats<kWidth>(entry.direction + i);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) values[k] = sum == 0.0 ? 0.0f : values[k] / norm;
    store_any<kWidth>(entry.matrix, entry.matrix_dtype, i, values);
  });
}

__global__ void muon_apply(MuonTable table, FactorsView factors, bool normalize, const double* squares,
                           const std::int32_t* skip) {
  if (is_skipped(skip)) return;
  const BlockPart part = find_part(table);
  const MuonEntry entry = table.entries[part.entry];
  const StepFactors step = factors_of(factors);
  const auto lr = static_cast<float>(step.lr), decay = static_cast<float>(step.weight_decay);
  float scale = 1.0f;
  if (normalize && step.keep != 0.0)
    scale = static_cast<float>(entry.root / sqrt(nonzero_squares(sum_of_parts(entry, squares, 1))));
  for_each_of_chunk(part.chunk, entry.vectors, [&](std::int64_t i, auto width) {
    constexpr int kWidth = width;
    auto weight = load_weight<kWidth>(entry, i);
    const auto matrix = load_any<kWidth>(entry.matrix, entry.matrix_dtype, i);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float scaled = scale * weight[k];
      weight[k] = scaled - lr * (matrix[k] + decay * scaled);
    }
    store_any<kWidth>(entry.parameter, entry.dtype, i, weight);
    if (entry.master != nullptr) device::store_vector(entry.master + i, weight);
  });
}

MuonEntry entry_of(const MuonItem& item, const Out& direction, bool has_momentum, std::int64_t first_part) {
  require_kernel_dtype("Muon's kernels", item.parameter);
  require_kernel_dtype("Muon's kernels", item.matrix);
  MuonEntry entry{.parameter = item.parameter.raw_data(),
                  .gradient = item.gradient.raw_data(),
                  .master = item.master.defined() ? item.master.data<float>() : nullptr,
                  .buffer = has_momentum ? item.momentum_buffer.data<float>() : nullptr,
                  .direction = direction.defined() ? direction.data<float>() : nullptr,
                  .matrix = item.matrix.raw_data(),
                  .count = item.parameter.numel(),
                  .first_part = first_part,
                  .root = std::sqrt(static_cast<float>(item.parameter.size(0))),
                  .dtype = item.parameter.dtype(),
                  .gradient_dtype = item.gradient.dtype(),
                  .matrix_dtype = item.matrix.dtype(),
                  .load_buffer = !item.is_first_step,
                  .vectors = false};
  entry.vectors = device::aligned_for_vectors(entry.parameter, entry.gradient, entry.master, entry.buffer,
                                              entry.direction, entry.matrix);
  return entry;
}

/// Calls start(table, blocks) for tables of all items that have elements.
template <typename Start>
void for_each_table(std::span<const MuonItem> items, const MuonOptions& options, std::span<const Out> directions,
                    Start&& start) {
  MuonTable table{};
  std::int64_t part = 0;
  const auto flush = [&] {
    if (table.count > 0) start(table, static_cast<unsigned>(part - table.entries[0].first_part));
    table.count = 0;
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (parts_of(items[i]) == 0) continue;
    if (table.count == kMostEntries) flush();
    table.entries[table.count++] =
        entry_of(items[i], directions.empty() ? Out() : directions[i], options.momentum != 0.0, part);
    part += parts_of(items[i]);
  }
  flush();
}

}  // namespace

void muon_matrices(std::span<const MuonItem> items, const MuonOptions& options, std::span<const Out> directions,
                   const Out& squares) {
  const cudaStream_t stream = tandem::cuda::current_stream(items.front().parameter);
  for_each_table(items, options, directions, [&](const MuonTable& table, unsigned blocks) {
    launch(muon_momentum, {blocks, kListThreads}, stream, table,
           factors_view(options.control, factors_of(options), options.loss_scale), options.nesterov, options.normalize,
           squares.data<double>(), skip_pointer(options.skip));
    launch(muon_divide, {blocks, kListThreads}, stream, table, options.eps, squares.data<double>());
  });
}

void muon_step(std::span<const MuonItem> items, const MuonOptions& options, const Tensor& squares) {
  const cudaStream_t stream = tandem::cuda::current_stream(items.front().parameter);
  for_each_table(items, options, {}, [&](const MuonTable& table, unsigned blocks) {
    launch(muon_apply, {blocks, kListThreads}, stream, table, factors_view(options.control, factors_of(options)),
           options.normalize, squares.data<double>(), skip_pointer(options.skip));
  });
}

}  // namespace tandem::kernels::cuda
