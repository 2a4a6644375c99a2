// Adam and AdamW on a GPU: one launch for all parameters.
#include "tandem/kernels/optimizer/adam_implementations.h"
#include "tandem/kernels/optimizer/update.cuh"

#include <cmath>

namespace tandem::kernels::cuda {

namespace {

/// States: exp_avg, exp_avg_sq, and with AMSGrad max_exp_avg_sq.
struct AdamEntry : UpdateEntry<3> {
  float inverse_bias2, step_size;  // they depend on the number of steps, which every parameter counts for itself
};

struct AdamFactors {
  float gradient, keep, weight_decay, fresh1, beta2, fresh2, eps;
};

__global__ void adam(TableView<AdamEntry> table, AdamFactors f, const std::int32_t* skip) {
  if (is_skipped(skip)) return;
  const Chunk chunk = find_chunk(table);
  const AdamEntry& entry = table.entries[chunk.entry];
  const float inverse_bias2 = entry.inverse_bias2, step_size = entry.step_size;
  const bool amsgrad = entry.states[2] != nullptr;
  update_chunk<3>(entry, chunk, [&](float& parameter, float gradient, float(&states)[3]) {
    const float value = parameter * f.keep;
    const float g = f.gradient * gradient + f.weight_decay * value;
    states[0] += (g - states[0]) * f.fresh1;
    states[1] = f.beta2 * states[1] + f.fresh2 * (g * g);
    float second = states[1];
    if (amsgrad) second = states[2] = states[2] > second ? states[2] : second;
    parameter = value - step_size * (states[0] / (sqrtf(second) * inverse_bias2 + f.eps));
  });
}

}  // namespace

void adam_step(std::span<const AdamItem> items, const AdamOptions& options) {
  std::vector<AdamEntry> entries;
  for (const AdamItem& item : items) {
    const auto count = static_cast<double>(item.step);
    const Out states[3] = {item.exp_avg, item.exp_avg_sq, item.max_exp_avg_sq};
    entries.push_back({make_update_entry<3>("adam_step", {item.parameter, item.gradient, item.master}, states),
                       static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options.beta2, count))),
                       static_cast<float>(options.lr / (1.0 - std::pow(options.beta1, count)))});
  }
  const Tensor& first = items.front().parameter;
  const TensorTable<AdamEntry> table(entries, first.device());
  if (table.chunks() == 0) return;
  const bool decoupled = options.decoupled_weight_decay;
  const AdamFactors factors{static_cast<float>(options.gradient_factor),
                            static_cast<float>(decoupled ? 1.0 - options.lr * options.weight_decay : 1.0),
                            static_cast<float>(decoupled ? 0.0 : options.weight_decay),
                            static_cast<float>(1.0 - options.beta1),
                            static_cast<float>(options.beta2),
                            static_cast<float>(1.0 - options.beta2),
                            static_cast<float>(options.eps)};
  launch(adam, {static_cast<unsigned>(table.chunks()), kListThreads}, tandem::cuda::current_stream(first), table.view(),
         factors, skip_pointer(options.skip));
}

}  // namespace tandem::kernels::cuda
