// Kernels over many tensors at once: one launch for all parameters of a model. A table on the device says where the
// tensors are; each block takes a chunk of one of them, cut up by the sizes alone.
#pragma once

#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/core/memory.h"
#include "tandem/core/out.h"
#include "tandem/core/stream.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/shared.h"
#include "tandem/kernels/device/vector.h"
#include "tandem/kernels/optimizer/table_cache.h"

#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace tandem::kernels::cuda {

constexpr std::int64_t kChunkElements = 4096;
constexpr int kListThreads = device::kThreadsPerBlock;

/// The table as kernels see it: entry i has the chunks [first_chunks[i], first_chunks[i + 1]).
template <typename Entry>
struct TableView {
  const Entry* entries;
  const std::int64_t* first_chunks;
  int count;
};

/// Entries (plain structs with a member `count`, the number of elements) in device memory.
template <typename Entry>
class TensorTable {
 public:
  /// Uploads the table in one copy from pinned memory, on the current stream; nobody waits for it.
  TensorTable(std::span<const Entry> entries, Device device) : count_(static_cast<int>(entries.size())) {
    static_assert(std::is_trivially_copyable_v<Entry> && alignof(Entry) <= 16);
    std::vector<std::int64_t> first_chunks{0};
    for (const Entry& entry : entries) {
      first_chunks.push_back(first_chunks.back() + (entry.count + kChunkElements - 1) / kChunkElements);
    }
    chunks_ = first_chunks.back();
    const std::size_t entry_bytes = entries.size_bytes(), chunk_bytes = first_chunks.size() * sizeof(std::int64_t);
    const MemoryTagScope scope(MemoryTag::workspace);
    const auto bytes = static_cast<std::int64_t>(entry_bytes + chunk_bytes);
    bytes_ = Tensor::empty({bytes}, {.dtype = DType::u8, .device = device});
    const Out here(Tensor::empty({bytes}, {.dtype = DType::u8, .pinned = true}));
    std::memcpy(here.data<std::uint8_t>(), first_chunks.data(), chunk_bytes);
    if (!entries.empty()) std::memcpy(here.data<std::uint8_t>() + chunk_bytes, entries.data(), entry_bytes);
    bytes_.copy_from_async(here);
  }

  /// One block per chunk.
  std::int64_t chunks() const { return chunks_; }

  TableView<Entry> view() const {
    const auto* const start = bytes_.data<std::uint8_t>();
    return {reinterpret_cast<const Entry*>(start + (static_cast<std::size_t>(count_) + 1) * sizeof(std::int64_t)),
            reinterpret_cast<const std::int64_t*>(start), count_};
  }

 private:
  int count_;
  std::int64_t chunks_ = 0;
  Tensor bytes_;
};

/// The table of these entries: that of the call before where it is of the same entries and its copy on the same stream,
/// else a new one. Entries can be compared.
template <typename Entry>
TensorTable<Entry> cached_table(std::vector<Entry> entries, Device device, TableCache* cache) {
  if (cache == nullptr) return TensorTable<Entry>(entries, device);
  struct Kept {
    std::vector<Entry> entries;
    Stream stream;
    TensorTable<Entry> table;
  };
  Stream stream = tandem::current_stream(device);
  const auto* const kept = std::any_cast<Kept>(&cache->last);
  if (kept != nullptr && kept->stream == stream && kept->entries == entries) return kept->table;
  TensorTable<Entry> table(entries, device);
  cache->last = Kept{std::move(entries), std::move(stream), table};
  return table;
}

/// The chunk of a block: elements [begin, end) of an entry.
struct Chunk {
  int entry;
  std::int64_t begin, end;
};

/// Finds the block's chunk; all threads must call it.
template <typename Entry>
__device__ Chunk find_chunk(const TableView<Entry>& table) {
  TANDEM_SHARED(int, found);
  const std::int64_t block = blockIdx.x;
  for (int i = static_cast<int>(threadIdx.x); i < table.count; i += kListThreads) {
    if (table.first_chunks[i] <= block && block < table.first_chunks[i + 1]) found = i;
  }
  __syncthreads();
  const std::int64_t begin = (block - table.first_chunks[found]) * kChunkElements;
  return {found, begin, min(begin + kChunkElements, table.entries[found].count)};
}

/// Calls visit(i, width) so that the elements i .. i + width - 1 together are the chunk; width is an integral_constant,
/// kWidth for the elements that come in so many if `vectors`, else 1. Neighbouring threads get neighbouring elements.
template <int kWidth = 4, typename Visit>
__device__ void for_each_of_chunk(const Chunk& chunk, bool vectors, Visit&& visit) {
  static_assert(kChunkElements % kWidth == 0, "chunks begin where vectors may");
  const std::int64_t rest = vectors ? chunk.end - (chunk.end - chunk.begin) % kWidth : chunk.begin;
  for (std::int64_t i = chunk.begin + threadIdx.x * kWidth; i < rest; i += kListThreads * kWidth) {
    visit(i, std::integral_constant<int, kWidth>{});
  }
  for (std::int64_t i = rest + threadIdx.x; i < chunk.end; i += kListThreads) {
    visit(i, std::integral_constant<int, 1>{});
  }
}

/// Calls visit(TypeTag<T>{}) inside a kernel; the dtype was checked before.
template <typename Visit>
__device__ void visit_dtype(DType dtype, Visit&& visit) {
  if (dtype == DType::f32) return visit(TypeTag<float>{});
  if (dtype == DType::f16) return visit(TypeTag<Half>{});
  visit(TypeTag<BFloat16>{});
}

/// Refuses dtypes that kernels do not come in.
inline void require_kernel_dtype(std::string_view op, const Tensor& tensor) {
  require(tensor.dtype() == DType::f32 || tensor.dtype() == DType::f16 || tensor.dtype() == DType::bf16,
          "{}: CUDA kernels take f32, f16 and bf16, got {}; use the CPU for it", op, name_of(tensor.dtype()));
}

}  // namespace tandem::kernels::cuda
