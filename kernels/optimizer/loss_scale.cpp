// Loss scales: checks, and what the CPU does.
#include "tandem/kernels/optimizer/loss_scale.h"

#include "tandem/core/memory.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/optimizer/loss_scale_implementations.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

namespace tandem::kernels {

namespace {

constexpr std::int64_t kBytes = sizeof(LossScaleState);

}  // namespace

Tensor make_loss_scale(Device device, const LossScaleState& state) {
  const MemoryTagScope scope(MemoryTag::workspace);
  const Tensor here = Tensor::empty({kBytes}, {.dtype = DType::u8});
  std::memcpy(Out(here).raw_data(), &state, sizeof state);
  return here.to(device);
}

LossScaleState read_loss_scale(const Tensor& state) {
  check_loss_scale("loss scale", state, state.device());
  const Tensor here = state.to(Device{});
  LossScaleState result;
  std::memcpy(&result, here.raw_data(), sizeof result);
  return result;
}

Tensor was_skipped(const Tensor& state) {
  check_loss_scale("loss scale", state, state.device());
  constexpr auto kPlace = static_cast<std::int64_t>(offsetof(LossScaleState, was_skipped) / sizeof(std::int32_t));
  return Tensor::on(state.storage(), {kBytes / static_cast<std::int64_t>(sizeof(std::int32_t))}, DType::i32)
      .select(0, kPlace);
}

void check_loss_scale(std::string_view op, const Tensor& state, Device device) {
  if (!state.defined()) return;
  require(state.dtype() == DType::u8 && state.shape() == Shape{kBytes} && state.is_dense() &&
              state.device() == device &&
              reinterpret_cast<std::uintptr_t>(state.raw_data()) % alignof(LossScaleState) == 0,
          "{}: a loss scale must be that of make_loss_scale() on {}, u8[{}], got {}", op, name_of(device), kBytes,
          describe(state));
}

void update_loss_scale(std::span<const Tensor> found, const LossScaleRule& rule, const Out& state) {
  constexpr std::string_view kOp = "update_loss_scale";
  require(state.defined(), "{}: needs a state, got {}", kOp, describe(state));
  check_loss_scale(kOp, state, state.device());
  require(found.size() <= kMostFoundWords, "{}: takes {} words that say whether to skip, got {}", kOp, kMostFoundWords,
          found.size());
  for (const Tensor& word : found)
    require(word.defined() && word.dtype() == DType::i32 && word.rank() == 0 && word.device() == state.device(),
            "{}: what says whether a step was skipped must be one i32 of rank 0 on {}, got {}", kOp,
            name_of(state.device()), describe(word));
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, state}) return cuda::update_loss_scale(found, rule, state);
  const bool is_skipped =
      std::any_of(found.begin(), found.end(), [](const Tensor& word) { return word.item() != 0.0; });
  auto& now = *static_cast<LossScaleState*>(state.raw_data());
  now = next_loss_scale(now, is_skipped, rule);
}

void clip_by_loss_scale(const Tensor& squared_norm, double max_norm, double factor, const Tensor& state,
                        const Out& clipped) {
  constexpr std::string_view kOp = "clip_by_loss_scale";
  require(max_norm > 0.0, "{}: the largest norm must be above 0, got {}", kOp, max_norm);
  require(clipped.defined(), "{}: needs a state to write, got {}", kOp, describe(clipped));
  check_loss_scale(kOp, clipped, clipped.device());
  check_loss_scale(kOp, state, clipped.device());
  require(squared_norm.defined() && squared_norm.dtype() == DType::f64 && squared_norm.rank() == 0 &&
              squared_norm.device() == clipped.device(),
          "{}: the squared norm must be one f64 of rank 0 on {}, got {}", kOp, name_of(clipped.device()),
          describe(squared_norm));
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, clipped}) return cuda::clip_by_loss_scale(squared_norm, max_norm, factor, state, clipped);
  LossScaleState now = state.defined() ? read_loss_scale(state) : LossScaleState{};
  now.inverse *= clip_factor(std::sqrt(squared_norm.item()) * std::abs(factor * now.inverse), max_norm);
  std::memcpy(clipped.raw_data(), &now, sizeof now);
}

void fill_loss_scale(const Tensor& state, double share, const Out& to) {
  constexpr std::string_view kOp = "fill_loss_scale";
  require(state.defined() && to.defined() && is_floating(to.dtype()) && to.is_dense(),
          "{}: needs a state and a dense floating tensor, got {} and {}", kOp, describe(state), describe(to));
  check_loss_scale(kOp, state, to.device());
  if (to.numel() == 0) return;
  if constexpr (kHasCuda)
    if (const CudaOp op{kOp, to}) return cuda::fill_loss_scale(state, share, to);
  to.fill(share * read_loss_scale(state).scale);
}

}  // namespace tandem::kernels
