// Slow weights on a GPU: one launch for all of them.
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/vector.h"
#include "tandem/kernels/optimizer/lookahead_implementations.h"
#include "tandem/kernels/optimizer/update.cuh"

namespace tandem::kernels::cuda {

namespace {

/// Of f32 weights and masters, `wide` is where they are, of half weights `narrow`; the other is null. With a master,
/// both are there.
struct LookaheadEntry {
  float *slow, *wide;
  void* narrow;
  std::int64_t count;
  DType narrow_dtype;
  bool vectors;  // all addresses are multiples of 16

  friend bool operator==(const LookaheadEntry&, const LookaheadEntry&) = default;
};

/// What `narrow` has is of type T.
template <typename T>
__device__ void move_chunk(const LookaheadEntry& entry, const Chunk& chunk, float share) {
  T* const narrow = static_cast<T*>(entry.narrow);
  for_each_of_chunk(chunk, entry.vectors, [&](std::int64_t i, auto width) {
    constexpr int kWidth = width;
    auto slow = load_floats<kWidth>(entry.slow + i);
    const auto weight = entry.wide != nullptr ? load_floats<kWidth>(entry.wide + i) : load_floats<kWidth>(narrow + i);
    device::Vector<T, kWidth> rounded;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      slow[k] -= share * (slow[k] - weight[k]);
      rounded[k] = device::from_float<T>(slow[k]);
    }
    device::store_vector(entry.slow + i, slow);
    if (entry.wide != nullptr) device::store_vector(entry.wide + i, slow);
    if (narrow != nullptr) device::store_vector(narrow + i, rounded);
  });
}

__global__ void lookahead(TableView<LookaheadEntry> table, FactorsView factors, const std::int32_t* skip) {
  if (is_skipped(skip)) return;
  const auto share = static_cast<float>(factors_of(factors).lr);
  const Chunk chunk = find_chunk(table);
  const LookaheadEntry& entry = table.entries[chunk.entry];
  if (entry.narrow_dtype == DType::f16) return move_chunk<Half>(entry, chunk, share);
  move_chunk<BFloat16>(entry, chunk, share);
}

LookaheadEntry make_entry(const LookaheadItem& item) {
  require_kernel_dtype("lookahead_step", item.weight);
  const bool is_wide = item.weight.dtype() == DType::f32;
  LookaheadEntry entry{.slow = item.slow.data<float>(),
                       .wide = is_wide                 ? item.weight.data<float>()
                               : item.master.defined() ? item.master.data<float>()
                                                       : nullptr,
                       .narrow = is_wide ? nullptr : item.weight.raw_data(),
                       .count = item.weight.numel(),
                       .narrow_dtype = is_wide ? DType::f16 : item.weight.dtype(),
                       .vectors = false};
  entry.vectors = device::aligned_for_vectors(entry.slow, entry.wide, entry.narrow);
  return entry;
}

}  // namespace

void lookahead_step(std::span<const LookaheadItem> items, double decay, const Tensor& skip, const Tensor& control,
                    TableCache* kept) {
  std::vector<LookaheadEntry> entries;
  for (const LookaheadItem& item : items) entries.push_back(make_entry(item));
  const Tensor& first = items.front().weight;
  const TensorTable<LookaheadEntry> table = cached_table(std::move(entries), first.device(), kept);
  if (table.chunks() == 0) return;
  launch(lookahead, {static_cast<unsigned>(table.chunks()), kListThreads}, tandem::cuda::current_stream(first),
         table.view(), factors_view(control, {.lr = 1.0 - decay}), skip_pointer(skip));
}

}  // namespace tandem::kernels::cuda
