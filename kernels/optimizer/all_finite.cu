// Looking for infinities and NaN in many tensors on a GPU.
#include "tandem/kernels/optimizer/all_finite_implementations.h"
#include "tandem/kernels/optimizer/list_entry.cuh"

namespace tandem::kernels::cuda {

namespace {

__global__ void find_non_finite(TableView<ListEntry> table, std::int32_t* found) {
  const Chunk chunk = find_chunk(table);
  bool here = false;
  read_chunk(table.entries[chunk.entry], chunk, [&](float value) { here = here || !(fabsf(value) < INFINITY); });
  // The order of these does not matter: all write the same.
  if (__syncthreads_or(here) != 0 && threadIdx.x == 0) atomicOr(found, 1);
}

}  // namespace

Tensor any_non_finite(std::span<const Tensor> tensors, TableCache* cache) {
  const MemoryTagScope scope(MemoryTag::workspace);
  const Device device = tensors.front().device();
  const Out found(Tensor::zeros({}, {.dtype = DType::i32, .device = device}));
  const TensorTable<ListEntry> table = make_list<ListEntry>("all_finite", tensors, cache);
  if (table.chunks() == 0) return found;
  launch(find_non_finite, {static_cast<unsigned>(table.chunks()), kListThreads}, tandem::cuda::current_stream(device),
         table.view(), found.data<std::int32_t>());
  return found;
}

}  // namespace tandem::kernels::cuda
