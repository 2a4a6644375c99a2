// A loss scale on a GPU: one thread changes it.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/optimizer/loss_scale_implementations.h"

namespace tandem::kernels::cuda {

namespace {

struct FoundWords {
  const std::int32_t* words[kMostFoundWords];
  int count;
};

__global__ void change_loss_scale(FoundWords found, LossScaleRule rule, LossScaleState* state) {
  bool is_skipped = false;
  for (int i = 0; i < found.count; ++i) is_skipped = is_skipped || *found.words[i] != 0;
  *state = next_loss_scale(*state, is_skipped, rule);
}

__global__ void clip_scale(const double* squared_norm, double max_norm, double factor, const LossScaleState* state,
                           LossScaleState* clipped) {
  LossScaleState now = state != nullptr ? *state : LossScaleState{};
  now.inverse *= clip_factor(sqrt(*squared_norm) * fabs(factor * now.inverse), max_norm);
  *clipped = now;
}

template <typename T>
__global__ void fill_with_scale(const LossScaleState* state, double share, T* to, std::int64_t count) {
  const T value = device::from_float<T>(static_cast<float>(share * state->scale));
  for (std::int64_t i = device::thread_in_grid(); i < count; i += device::threads_in_grid()) to[i] = value;
}

}  // namespace

void update_loss_scale(std::span<const Tensor> found, const LossScaleRule& rule, const Out& state) {
  FoundWords words{};
  for (const Tensor& word : found) words.words[words.count++] = word.data<std::int32_t>();
  launch(change_loss_scale, {1, 1}, tandem::cuda::current_stream(state), words, rule,
         static_cast<LossScaleState*>(state.raw_data()));
}

void clip_by_loss_scale(const Tensor& squared_norm, double max_norm, double factor, const Tensor& state,
                        const Out& clipped) {
  launch(clip_scale, {1, 1}, tandem::cuda::current_stream(clipped), squared_norm.data<double>(), max_norm, factor,
         state.defined() ? static_cast<const LossScaleState*>(state.raw_data()) : nullptr,
         static_cast<LossScaleState*>(clipped.raw_data()));
}

void fill_loss_scale(const Tensor& state, double share, const Out& to) {
  device::dispatch(to.dtype(), "fill_loss_scale", [&]<typename T>(TypeTag<T>) {
    launch(fill_with_scale<T>, {device::blocks_for(to.numel(), device::kThreadsPerBlock), device::kThreadsPerBlock},
           tandem::cuda::current_stream(to), static_cast<const LossScaleState*>(state.raw_data()), share, to.data<T>(),
           to.numel());
  });
}

}  // namespace tandem::kernels::cuda
