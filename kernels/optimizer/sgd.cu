// Stochastic gradient descent on a GPU: one launch for all parameters.
#include "tandem/kernels/optimizer/sgd_implementations.h"
#include "tandem/kernels/optimizer/update.cuh"

namespace tandem::kernels::cuda {

namespace {

struct SgdEntry : UpdateEntry<1> {
  float fresh;  // share of the gradient in the momentum buffer

  friend bool operator==(const SgdEntry&, const SgdEntry&) = default;
};

__global__ void sgd(TableView<SgdEntry> table, FactorsView factors, bool nesterov, const std::int32_t* skip) {
  if (is_skipped(skip)) return;
  const StepFactors step = factors_of(factors);
  const auto lr = static_cast<float>(step.lr), momentum = static_cast<float>(step.momentum),
             weight_decay = static_cast<float>(step.weight_decay),
             gradient_factor = static_cast<float>(step.gradient_factor);
  const Chunk chunk = find_chunk(table);
  const SgdEntry& entry = table.entries[chunk.entry];
  const float fresh = entry.fresh;
  const bool has_momentum = entry.states[0] != nullptr;
  update_chunk<1>(entry, chunk, [&](float& parameter, float gradient, float(&states)[1]) {
    const float g = gradient_factor * gradient + weight_decay * parameter;
    float direction = g;
    if (has_momentum) {
      states[0] = momentum * states[0] + fresh * g;
      direction = nesterov ? g + momentum * states[0] : states[0];
    }
    parameter -= lr * direction;
  });
}

}  // namespace

void sgd_step(std::span<const SgdItem> items, const SgdOptions& options) {
  const bool has_momentum = options.momentum != 0.0;
  std::vector<SgdEntry> entries;
  for (const SgdItem& item : items) {
    const Out states[1] = {has_momentum ? item.momentum_buffer : Out()};
    SgdEntry entry{make_update_entry<1>("sgd_step", {item.parameter, item.gradient, item.master}, states),
                   static_cast<float>(item.is_first_step ? 1.0 : 1.0 - options.dampening)};
    entry.load_states = !item.is_first_step;
    entries.push_back(entry);
  }
  const Tensor& first = items.front().parameter;
  const TensorTable<SgdEntry> table = cached_table(std::move(entries), first.device(), options.table);
  if (table.chunks() == 0) return;
  launch(sgd, {static_cast<unsigned>(table.chunks()), kListThreads}, tandem::cuda::current_stream(first), table.view(),
         factors_view(options.control, factors_of(options), options.loss_scale), options.nesterov,
         skip_pointer(options.skip));
}

}  // namespace tandem::kernels::cuda
