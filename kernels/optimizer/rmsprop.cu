// RMSprop on a GPU: one launch for all parameters.
#include "tandem/kernels/optimizer/rmsprop_implementations.h"
#include "tandem/kernels/optimizer/update.cuh"

namespace tandem::kernels::cuda {

namespace {

/// States: square_avg, with momentum its buffer, and grad_avg where it is centered.
using RmspropEntry = UpdateEntry<3>;

/// What does not change from step to step.
struct RmspropConstants {
  float alpha, fresh, eps;
};

__global__ void rmsprop(TableView<RmspropEntry> table, FactorsView factors, RmspropConstants f,
                        const std::int32_t* skip) {
  if (is_skipped(skip)) return;
  const StepFactors step = factors_of(factors);
  const auto lr = static_cast<float>(step.lr), momentum = static_cast<float>(step.momentum),
             weight_decay = static_cast<float>(step.weight_decay),
             gradient_factor = static_cast<float>(step.gradient_factor);
  const Chunk chunk = find_chunk(table);
  const RmspropEntry& entry = table.entries[chunk.entry];
  const bool has_momentum = entry.states[1] != nullptr, centered = entry.states[2] != nullptr;
  update_chunk<3>(entry, chunk, [&](float& parameter, float gradient, float(&states)[3]) {
    const float g = gradient_factor * gradient + weight_decay * parameter;
    states[0] = f.alpha * states[0] + f.fresh * (g * g);
    float variance = states[0];
    if (centered) {
      states[2] += (g - states[2]) * f.fresh;
      variance -= states[2] * states[2];
    }
    float change = g / (sqrtf(variance) + f.eps);
    if (has_momentum) change = states[1] = change + momentum * states[1];
    parameter -= lr * change;
  });
}

}  // namespace

void rmsprop_step(std::span<const RmspropItem> items, const RmspropOptions& options) {
  std::vector<RmspropEntry> entries;
  for (const RmspropItem& item : items) {
    const Out states[3] = {item.square_avg, options.momentum != 0.0 ? item.momentum_buffer : Out(), item.grad_avg};
    entries.push_back(make_update_entry<3>("rmsprop_step", {item.parameter, item.gradient, item.master}, states));
  }
  const Tensor& first = items.front().parameter;
  const TensorTable<RmspropEntry> table = cached_table(std::move(entries), first.device(), options.table);
  if (table.chunks() == 0) return;
  const RmspropConstants constants{static_cast<float>(options.alpha), static_cast<float>(1.0 - options.alpha),
                                   static_cast<float>(options.eps)};
  launch(rmsprop, {static_cast<unsigned>(table.chunks()), kListThreads}, tandem::cuda::current_stream(first),
         table.view(), factors_view(options.control, factors_of(options), options.loss_scale), constants,
         skip_pointer(options.skip));
}

}  // namespace tandem::kernels::cuda
