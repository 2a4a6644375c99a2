// Entries and loops of kernels that read, or scale, many tensors.
#pragma once

#include "tandem/kernels/optimizer/multi_tensor.cuh"

namespace tandem::kernels::cuda {

template <typename Pointer>
struct BasicListEntry {
  Pointer data;
  std::int64_t count;
  DType dtype;
  bool vectors;  // the address is a multiple of 16

  friend bool operator==(const BasicListEntry&, const BasicListEntry&) = default;
};

/// What is only read.
using ListEntry = BasicListEntry<const void*>;

/// Of tensors that are read, or of Outs that are written; `cache`: where the table is kept, if anywhere.
template <typename Entry, typename Operand>
TensorTable<Entry> make_list(std::string_view op, std::span<const Operand> tensors, TableCache* cache = nullptr) {
  std::vector<Entry> entries;
  for (const Operand& tensor : tensors) {
    require_kernel_dtype(op, tensor);
    entries.push_back(
        {tensor.raw_data(), tensor.numel(), tensor.dtype(), device::aligned_for_vectors(tensor.raw_data())});
  }
  return cached_table(std::move(entries), tensors.front().device(), cache);
}

/// Calls visit(value) for every element of the block's chunk, in an order of its own for each thread.
template <typename Visit>
__device__ void read_chunk(const ListEntry& entry, const Chunk& chunk, Visit&& visit) {
  visit_dtype(entry.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const data = static_cast<const T*>(entry.data);
    for_each_of_chunk<device::kVectorWidth<T>>(chunk, entry.vectors, [&](std::int64_t i, auto width) {
      const auto values = device::load_vector<width>(data + i);
#pragma unroll
      for (int k = 0; k < width; ++k) visit(device::to_float(values[k]));
    });
  });
}

}  // namespace tandem::kernels::cuda
