// Norm and scaling of many tensors on a GPU. The sum is in f64, where squares of f32 are exact: one sum per chunk, then
// one block adds those up, each in a fixed order.
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/reduce.h"
#include "tandem/kernels/device/vector.h"
#include "tandem/kernels/optimizer/list_entry.cuh"
#include "tandem/kernels/optimizer/norm_implementations.h"

namespace tandem::kernels::cuda {

namespace {

__global__ void chunk_squares(TableView<ListEntry> table, double* partials) {
  const Chunk chunk = find_chunk(table);
  double sum = 0.0;
  read_chunk(table.entries[chunk.entry], chunk, [&](float value) {
    const double wide = value;
    sum += wide * wide;
  });
  sum = device::block_sum<kListThreads>(sum);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

__global__ void join_squares(const double* partials, std::int64_t count, double* result) {
  double sum = 0.0;
  for (std::int64_t i = threadIdx.x; i < count; i += kListThreads) sum += partials[i];
  sum = device::block_sum<kListThreads>(sum);
  if (threadIdx.x == 0) *result = sum;
}

/// What is scaled in place.
using ScaledEntry = BasicListEntry<void*>;

__global__ void scale_chunks(TableView<ScaledEntry> table, float factor) {
  const Chunk chunk = find_chunk(table);
  const ScaledEntry& entry = table.entries[chunk.entry];
  visit_dtype(entry.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const data = static_cast<T*>(entry.data);
    for_each_of_chunk<device::kVectorWidth<T>>(chunk, entry.vectors, [&](std::int64_t i, auto width) {
      auto values = device::load_vector<width>(data + i);
#pragma unroll
      for (int k = 0; k < width; ++k) values[k] = device::from_float<T>(device::to_float(values[k]) * factor);
      device::store_vector(data + i, values);
    });
  });
}

}  // namespace

Tensor squared_norm_there(std::span<const Tensor> tensors, TableCache* cache) {
  const TensorTable<ListEntry> table = make_list<ListEntry>("squared_norm", tensors, cache);
  const Device device = tensors.front().device();
  if (table.chunks() == 0) return Tensor::zeros({}, {.dtype = DType::f64, .device = device});
  const cudaStream_t stream = tandem::cuda::current_stream(device);
  const MemoryTagScope scope(MemoryTag::workspace);
  const Out partials(Tensor::empty({table.chunks()}, {.dtype = DType::f64, .device = device}));
  const Out result(Tensor::empty({}, {.dtype = DType::f64, .device = device}));
  launch(chunk_squares, {static_cast<unsigned>(table.chunks()), kListThreads}, stream, table.view(),
         partials.data<double>());
  launch(join_squares, {1, kListThreads}, stream, partials.data<double>(), table.chunks(), result.data<double>());
  return result;
}

void scale_all(std::span<const Out> tensors, double factor) {
  const TensorTable<ScaledEntry> table = make_list<ScaledEntry>("scale_all", tensors);
  if (table.chunks() == 0) return;
  launch(scale_chunks, {static_cast<unsigned>(table.chunks()), kListThreads},
         tandem::cuda::current_stream(tensors.front()), table.view(), static_cast<float>(factor));
}

}  // namespace tandem::kernels::cuda
