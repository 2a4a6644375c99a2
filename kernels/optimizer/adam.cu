// Adam and AdamW on a GPU: one launch for all parameters.
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/optimizer/adam_implementations.h"
#include "tandem/kernels/optimizer/update.cuh"

#include <cmath>

namespace tandem::kernels::cuda {

namespace {

/// States: exp_avg, exp_avg_sq, and with AMSGrad max_exp_avg_sq.
struct AdamEntry : UpdateEntry<3> {
  AdamCount* counted;              // on the device; null: what follows holds
  float inverse_bias2, step_size;  // they depend on the number of steps, which every parameter counts for itself

  friend bool operator==(const AdamEntry&, const AdamEntry&) = default;
};

/// What does not change from step to step.
struct AdamConstants {
  float fresh1, beta2, fresh2, eps;
};

/// Counts a step of each entry that has a count.
__global__ void count_adam_steps(TableView<AdamEntry> table, FactorsView factors, double beta1, double beta2,
                                 const std::int32_t* skip) {
  if (is_skipped(skip)) return;
  const double lr = factors_of(factors).lr;
  for (std::int64_t i = device::thread_in_grid(); i < table.count; i += device::threads_in_grid()) {
    AdamCount* const count = table.entries[i].counted;
    if (count == nullptr) continue;
    const std::int64_t steps = count->steps + 1;
    count->steps = steps;
    count->inverse_bias2 = static_cast<float>(1.0 / sqrt(1.0 - integer_power(beta2, steps)));
    count->step_size = static_cast<float>(lr / (1.0 - integer_power(beta1, steps)));
  }
}

__global__ void adam(TableView<AdamEntry> table, FactorsView factors, AdamConstants f, const std::int32_t* skip) {
  if (is_skipped(skip)) return;
  const StepFactors step = factors_of(factors);
  const auto gradient_factor = static_cast<float>(step.gradient_factor), keep = static_cast<float>(step.keep),
             weight_decay = static_cast<float>(step.weight_decay);
  const Chunk chunk = find_chunk(table);
  const AdamEntry& entry = table.entries[chunk.entry];
  const AdamCount* const count = entry.counted;
  const float inverse_bias2 = count != nullptr ? count->inverse_bias2 : entry.inverse_bias2,
              step_size = count != nullptr ? count->step_size : entry.step_size;
  const bool amsgrad = entry.states[2] != nullptr;
  update_chunk<3>(entry, chunk, [&](float& parameter, float gradient, float(&states)[3]) {
    const float value = parameter * keep;
    const float g = gradient_factor * gradient + weight_decay * value;
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
  bool has_counts = false;
  for (const AdamItem& item : items) {
    const Out states[3] = {item.exp_avg, item.exp_avg_sq, item.max_exp_avg_sq};
    AdamEntry entry{make_update_entry<3>("adam_step", {item.parameter, item.gradient, item.master}, states), nullptr,
                    0.0f, 0.0f};
    if (item.count.defined()) {
      entry.counted = static_cast<AdamCount*>(item.count.raw_data());
      has_counts = true;
    } else {
      require(!options.control.defined(),
              "adam_step: factors on the device need the items' counts there, and parameter {} has none",
              describe(item.parameter));
      const auto step = static_cast<double>(item.step);
      entry.inverse_bias2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options.beta2, step)));
      entry.step_size = static_cast<float>(options.lr / (1.0 - std::pow(options.beta1, step)));
    }
    entries.push_back(entry);
  }
  const Tensor& first = items.front().parameter;
  const TensorTable<AdamEntry> table = cached_table(std::move(entries), first.device(), options.table);
  const AdamConstants constants{static_cast<float>(1.0 - options.beta1), static_cast<float>(options.beta2),
                                static_cast<float>(1.0 - options.beta2), static_cast<float>(options.eps)};
  const FactorsView factors = factors_view(options.control, factors_of(options), options.loss_scale);
  const cudaStream_t stream = tandem::cuda::current_stream(first);
  if (has_counts) {
    const unsigned blocks = device::blocks_for(static_cast<std::int64_t>(items.size()), kListThreads);
    launch(count_adam_steps, {blocks, kListThreads}, stream, table.view(), factors, options.beta1, options.beta2,
           skip_pointer(options.skip));
  }
  if (table.chunks() == 0) return;
  launch(adam, {static_cast<unsigned>(table.chunks()), kListThreads}, stream, table.view(), factors, constants,
         skip_pointer(options.skip));
}

}  // namespace tandem::kernels::cuda
