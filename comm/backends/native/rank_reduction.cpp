// Blocks that stay in the L1 cache, one loop of two pointers after another: the compiler vectorises those.
#include "tandem/comm/backends/native/rank_reduction.h"

#include "tandem/comm/backends/combine.h"
#include "tandem/core/error.h"
#include "tandem/kernels/cast/float_runs.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace tandem::comm {

namespace {

using kernels::cpu::round_floats;
using kernels::cpu::widen;

constexpr std::int64_t kBlockBytes = 4096;

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// What elements are added up in.
template <typename T>
using Sum = std::conditional_t<kIsHalf<T>, float, T>;

template <typename T, typename Op>
void reduce_blocks(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs, std::int64_t count,
                   Op op, Sum<T> divisor) {
  using S = Sum<T>;
  constexpr std::int64_t kBlock = kBlockBytes / static_cast<std::int64_t>(sizeof(S));
  alignas(64) S sums[kBlock];
  alignas(64) S widened[kIsHalf<T> ? kBlock : 1];
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t length = std::min(kBlock, count - begin);
    const auto bytes = static_cast<std::size_t>(length) * sizeof(T);
    const auto block_of = [&](std::size_t rank) { return reinterpret_cast<const T*>(inputs[rank]) + begin; };
    if constexpr (kIsHalf<T>) {
      widen(block_of(0), length, sums);
    } else {
      std::memcpy(sums, block_of(0), bytes);
    }
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
      const S* other = widened;
      if constexpr (kIsHalf<T>) {
        widen(block_of(rank), length, widened);
      } else {
        other = block_of(rank);
      }
      for (std::int64_t i = 0; i < length; ++i) sums[i] = op(sums[i], other[i]);
    }
    if (divisor != S(1))
      for (std::int64_t i = 0; i < length; ++i) sums[i] = sums[i] / divisor;
    for (std::byte* const output : outputs) {
      if constexpr (kIsHalf<T>) {
        round_floats(sums, length, reinterpret_cast<T*>(output) + begin);
      } else {
        std::memcpy(reinterpret_cast<T*>(output) + begin, sums, bytes);
      }
    }
  }
}

}  // namespace

void reduce_ranks(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs, std::int64_t count,
                  DType dtype, ReduceOp op) {
  if (count == 0) return;
  require(dtype != DType::u8, "reduce: {} has no reduction here", name_of(dtype));
  dispatch_all(dtype, "reduce", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, std::uint8_t>) {
      using S = Sum<T>;
      const S divisor = op == ReduceOp::average ? static_cast<S>(inputs.size()) : S(1);
      visit_reduction<S>(op, [&](auto combine) { reduce_blocks<T>(inputs, outputs, count, combine, divisor); });
    }
  });
}

}  // namespace tandem::comm
