// Sums of what each channel gave, over batches and ranks.
#include "tandem/train/dead_relus.h"

#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/functions/reduce.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/layers/activation.h"
#include "tandem/layers/batch_norm.h"
#include "tandem/train/metrics.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

namespace tandem::train {
namespace {

bool ends_in_relu(const layers::Module& module) {
  if (const auto* const norm = dynamic_cast<const layers::BatchNorm2d*>(&module))
    return norm->options().activation == layers::Activation::relu;
  return module.sequential_slots() == 2 || dynamic_cast<const layers::ReLU*>(&module) != nullptr;
}

/// [C], f32
Tensor sums_of_channels(const Tensor& output) {
  if (output.rank() < 2) return autograd::cast(autograd::sum(output), DType::f32).view({1});
  const int channels = output.rank() == 4 ? 1 : output.rank() - 1;
  std::vector<int> others;
  for (int dim = 0; dim < output.rank(); ++dim)
    if (dim != channels) others.push_back(dim);
  return autograd::cast(autograd::sum(output, others), DType::f32);
}

}  // namespace

DeadReluMeter::DeadReluMeter(layers::Module& model) {
  hooks_.push_back(model.register_forward_pre_hook([this](layers::Module&, const Tensor&) { calls_.clear(); }));
  for (const auto& [name, module] : model.named_modules())
    if (ends_in_relu(*module))
      hooks_.push_back(module->register_forward_hook(
          [this, own = name](layers::Module&, const Tensor&, const Tensor& output) { add(own, output); }));
}

DeadReluMeter::~DeadReluMeter() {
  for (layers::RemovableHandle& hook : hooks_) hook.remove();
}

ForwardFunction DeadReluMeter::watched(ForwardFunction forward) {
  return [this, own = std::move(forward)](layers::Module& model, const data::Batch& batch) {
    calls_.clear();
    return run_forward(own, model, batch);
  };
}

void DeadReluMeter::add(const std::string& module, const Tensor& output) {
  const autograd::NoGrad no_grad;
  const int call = ++calls_[module];
  const std::string name = call == 1 ? module : fmt::format("{} (call {})", module, call);
  const Tensor sums = sums_of_channels(output);
  const auto place = std::ranges::find(places_, name, &Place::name);
  if (place == places_.end())
    places_.push_back({name, sums});
  else
    place->sums = autograd::add(place->sums, sums);
}

std::vector<DeadRelus> DeadReluMeter::dead_relus(comm::ProcessGroup& group) const {
  std::vector<double> alive;
  for (const Place& place : places_)
    std::ranges::transform(place.sums.to_vector<float>(), std::back_inserter(alive),
                           [](float sum) { return sum == 0.0F ? 0.0 : 1.0; });
  // A rank that saw no image knows of no channels.
  alive.resize(static_cast<std::size_t>(max_over_ranks(static_cast<double>(alive.size()), group)));
  if (alive.empty()) return {};
  const Tensor all = Tensor::from(alive, {static_cast<std::int64_t>(alive.size())});
  group.all_reduce(Out(all), comm::ReduceOp::max);
  const double* next = all.data<double>();
  std::vector<DeadRelus> relus;
  for (const Place& place : places_) {
    const std::int64_t channels = place.sums.numel();
    relus.push_back({place.name, channels, std::count(next, next + channels, 0.0)});
    next += channels;
  }
  return relus;
}

}  // namespace tandem::train
