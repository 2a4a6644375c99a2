// Slow weights: one fused pass over all of them.
#include "tandem/kernels/optimizer/lookahead.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/optimizer/lookahead_implementations.h"
#include "tandem/kernels/optimizer/tensor_list.h"
#include "tandem/kernels/traffic.h"

#include <algorithm>
#include <array>

namespace tandem::kernels {

namespace {

template <typename S>
void move_slow_weights(S share, std::int64_t count, S* __restrict slow, const S* __restrict weight) {
  for (std::int64_t i = 0; i < count; ++i) slow[i] -= share * (slow[i] - weight[i]);
}

/// Elements [begin, end) of an item whose weights are of type T.
template <typename T>
void move_item(const LookaheadItem& item, double share, std::int64_t begin, std::int64_t end) {
  using S = compute_t<T>;
  S* const slow = item.slow.data<S>() + begin;
  T* const weight = item.weight.data<T>() + begin;
  if constexpr (std::is_same_v<T, S>) {
    move_slow_weights(static_cast<S>(share), end - begin, slow, weight);
    std::copy_n(slow, end - begin, weight);
  } else {
    float* const master = item.master.defined() ? item.master.data<float>() + begin : nullptr;
    std::array<float, cpu::kBlock> widened;
    cpu::for_each_block(end - begin, [&](std::int64_t offset, std::int64_t count) {
      if (master == nullptr) cpu::widen(weight + offset, count, widened.data());
      move_slow_weights(static_cast<float>(share), count, slow + offset,
                        master == nullptr ? widened.data() : master + offset);
      if (master != nullptr) std::copy_n(slow + offset, count, master + offset);
      cpu::round_floats(slow + offset, count, weight + offset);
    });
  }
}

}  // namespace

void lookahead_step(std::span<const LookaheadItem> items, double decay, const Tensor& skip, const Tensor& control,
                    TableCache* table) {
  constexpr std::string_view kOp = "lookahead_step";
  std::vector<std::int64_t> sizes;
  for (const LookaheadItem& item : items) {
    const DType dtype = item.weight.dtype();
    require_alike(kOp, "the slow weight", item.slow, item.weight, optimizer_state_dtype(dtype));
    check_master(kOp, item.weight, item.master);
    require_one_device(kOp, items.front().weight, item.weight);
    note_traffic(item.slow, item.slow, item.master.defined() ? item.master : item.weight, item.weight, item.master);
    sizes.push_back(item.weight.numel());
  }
  if (items.empty()) return;
  check_skip(kOp, skip, items.front().weight.device());
  check_control(kOp, control, items.front().weight.device());
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, items.front().weight}) return cuda::lookahead_step(items, decay, skip, control, table);
  if (is_skipped(skip)) return;
  const double share = factors_on_cpu(control, {.lr = 1.0 - decay}).lr;
  for_each_part(sizes, [&](std::size_t index, std::int64_t begin, std::int64_t end) {
    dispatch_floating(items[index].weight.dtype(), kOp,
                      [&](auto tag) { move_item<typename decltype(tag)::type>(items[index], share, begin, end); });
  });
}

}  // namespace tandem::kernels
