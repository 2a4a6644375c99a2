// A loss scale in a device's memory, which goes up and down there.
#pragma once

#include "tandem/core/out.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tandem::kernels {

/// A loss scale as it lies in a device's memory.
struct LossScaleState {
  double scale = 1.0, inverse = 1.0;  // inverse: 1 / scale
  std::int64_t good_steps = 0;        // in a row, since the scale has changed
  std::int64_t skipped_steps = 0;
  std::int32_t was_skipped = 0, unused = 0;  // whether the last step was skipped
};

/// How a scale changes.
struct LossScaleRule {
  bool is_fixed = false;                             // it does not: steps that are skipped are counted, that is all
  double growth_factor = 2.0, backoff_factor = 0.5;  // of a step that makes as many good ones, of one that is skipped
  std::int64_t growth_interval = 2000;               // good steps before the scale grows
  double least = 0x1p-126, most = 0x1p126;           // f32 holds them, and their inverses
};

/// What a step makes of it.
constexpr LossScaleState next_loss_scale(LossScaleState state, bool is_skipped, const LossScaleRule& rule) {
  const double before = state.scale;
  if (is_skipped) ++state.skipped_steps;
  state.was_skipped = is_skipped ? 1 : 0;
  if (rule.is_fixed) return state;
  if (is_skipped) {
    state.scale = before * rule.backoff_factor;
    if (state.scale < rule.least) state.scale = rule.least;
    state.good_steps = 0;
  } else if (++state.good_steps == rule.growth_interval) {
    state.scale = before * rule.growth_factor;
    if (state.scale > rule.most) state.scale = rule.most;
    state.good_steps = 0;
  }
  if (state.scale != before) state.inverse = 1.0 / state.scale;
  return state;
}

/// By what to multiply gradients of this norm, so that it is at most max_norm, as PyTorch does; 1 where they stay as
/// they are, 0 or NaN for a norm that is not finite.
constexpr double clip_factor(double norm, double max_norm) {
  const double factor = max_norm / (norm + 1e-6);
  return factor >= 1.0 ? 1.0 : factor;
}

/// How many words update_loss_scale() takes.
constexpr std::size_t kMostFoundWords = 8;

/// A tensor that holds this state: u8[sizeof(LossScaleState)].
Tensor make_loss_scale(Device device, const LossScaleState& state);
/// What such a tensor holds; waits for a GPU.
LossScaleState read_loss_scale(const Tensor& state);
/// Its word that says whether the last step was skipped, as a tensor like those of any_non_finite().
Tensor was_skipped(const Tensor& state);
/// Throws Error unless `state` is such a tensor on `device`, or undefined.
void check_loss_scale(std::string_view op, const Tensor& state, Device device);

/// next_loss_scale() of a step that was skipped if one of `found` is not 0: i32, rank 0, as any_non_finite() gives
/// them. All on one device; nobody waits. Throws Error for other tensors, and for more than kMostFoundWords.
void update_loss_scale(std::span<const Tensor> found, const LossScaleRule& rule, const Out& state);

/// Clips gradients by the inverse that they are multiplied by: gives `clipped`, which may be `state`, the scale of
/// `state`, or 1 where that is undefined, and its inverse times clip_factor() of the norm that gradients have `factor`
/// * inverse times. `squared_norm`, f64 of rank 0, is that of the gradients as they are. All on one device; nobody
/// waits. Throws Error for other tensors, and unless max_norm > 0.
void clip_by_loss_scale(const Tensor& squared_norm, double max_norm, double factor, const Tensor& state,
                        const Out& clipped);

/// Makes each element of `to`, floating and dense, share * scale, rounded as Tensor::fill() rounds it. On one device;
/// nobody waits. Throws Error for other tensors, f64 on a GPU among them.
void fill_loss_scale(const Tensor& state, double share, const Out& to);

}  // namespace tandem::kernels
