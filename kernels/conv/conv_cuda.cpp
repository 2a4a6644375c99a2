// Convolution on a GPU: the passes, each by who is chosen for it.
#include "tandem/kernels/conv/choice_cuda.h"
#include "tandem/kernels/conv/cudnn/library_passes.h"
#include "tandem/kernels/conv/implementations.h"
#include "tandem/kernels/conv/tuning/tuner.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace tandem::kernels::cuda {
namespace {

std::string_view name_of(const ConvRunner& runner) {
  constexpr std::string_view kPlans[kMostPlans] = {"cudnn",   "cudnn-1", "cudnn-2", "cudnn-3",
                                                   "cudnn-4", "cudnn-5", "cudnn-6", "cudnn-7"};
  return runner.library != nullptr ? kPlans[runner.library_plan] : runner.family->name;
}

/// Whether a gradient may come with its mask.
bool takes_mask(const ConvRunner& runner) { return runner.library == nullptr && runner.family->takes_mask; }

/// One pass, as far as the choice of its runner goes.
struct Pass {
  PassKind kind;
  const ConvRunner& planned;
  Operands operands;  // what a library needs
  Operands all;       // what a family must be able to read and write
  TunedWork work = {};
  std::function<ConvTask(ConvLibrary&)> library_task = {};  // what `run` gives to a library; empty: the pass alone

  ConvTask task_for(ConvLibrary& of, const ConvGeometry& g) const {
    return library_task ? library_task(of) : ConvTask{g, operands.dtype, library_pass(kind)};
  }
};

/// A bit for each tensor that begins at no multiple of 16 bytes.
template <typename... Tensors>
std::uint8_t unaligned_of(const Tensors&... tensors) {
  unsigned bits = 0, bit = 1;
  ((bits |= is_aligned(tensors) ? 0 : bit, bit *= 2), ...);
  return static_cast<std::uint8_t>(bits);
}

/// By rule: whom the plan names, unless the tensors lie where it did not expect them.
ConvRunner runner_by_rule(const ConvPlan& plan, const Pass& pass) {
  const bool as_planned = pass.planned.library != nullptr ? pass.operands.aligned : pass.all.aligned;
  if (pass.planned.is_chosen() && as_planned) return pass.planned;
  count_conv_choice();
  return choose_runner(pass.kind, plan.geometry, plan.impl, pass.operands, pass.all);
}

/// Everyone who can run a pass for ConvImpl::automatic.
std::vector<ConvRunner> all_runners(const ConvGeometry& g, const Pass& pass) {
  const FamilyChoice choice = choose(g, ConvImpl::automatic, pass.all);
  const ConvFamily* const fastest = &family_for(pass.kind, *choice.family, g, pass.all);
  std::vector<ConvRunner> all{{.family = fastest}};
  for (const ConvFamily* slower = fastest; slower-- != conv_families().data();)
    if (slower->is_slower_candidate && slower->obstacle(pass.kind, g, pass.all).empty())
      all.push_back({.family = slower});
  ConvLibrary* const library = gpu_conv_library();
  const ConvTask alone{g, pass.operands.dtype, library_pass(pass.kind)};
  const bool takes_tensors = pass.operands.aligned && pads_both_sides_alike(g);
  if (library != nullptr && takes_tensors && library->supports(alone, pass.operands.device)) {
    const int plans = library->plan_count(pass.task_for(*library, g), pass.operands.device);
    for (int plan = 0; plan < plans; ++plan) all.push_back({.library = library, .library_plan = plan});
  }
  return all;
}

/// By measurement where the tuner has one or makes one by `run(runner)`, else by rule. Where cuDNN was asked for, the
/// fastest of its plans.
template <typename Run>
ConvRunner select(const ConvPlan& plan, const Pass& pass, Run&& run) {
  const ConvGeometry& g = plan.geometry;
  const ConvRunner rule = runner_by_rule(plan, pass);
  const bool measured = plan.impl == ConvImpl::automatic || rule.library != nullptr;
  if (!measured || !conv_tuner().is_active() || g.output_numel() == 0 || g.input_numel() == 0) return rule;
  const std::vector<ConvRunner> all = all_runners(g, pass);
  std::vector<TuningCandidate> candidates;
  for (const ConvRunner& runner : all) candidates.push_back({name_of(runner), [&run, runner] { run(runner); }});
  const auto fallback = static_cast<std::size_t>(std::find(all.begin(), all.end(), rule) - all.begin());
  const TuningKey key{DeviceType::cuda, pass.kind, pass.operands.dtype, g, pass.work};
  const auto allowed = [&](std::size_t i) { return plan.impl == ConvImpl::automatic || all[i].library != nullptr; };
  return all[conv_tuner().choose(key, pass.operands.device, candidates, fallback, allowed)];
}

void run_backward_input(const ConvRunner& runner, const ConvGeometry& g, const ConvBackwardInputs& from,
                        const LayerBelow& below, const Out& grad_x) {
  const bool has_below = below.mask.defined() || below.grad_bias.defined();
  if (runner.library != nullptr)
    return library_backward_input(*runner.library, g, from.grad_y, from.w, from.x, below, grad_x, runner.library_plan);
  if (has_below && runner.family->backward_input_below != nullptr)
    return runner.family->backward_input_below(g, from.grad_y, from.mask, from.w, below, grad_x);
  runner.family->backward_input(g, from.grad_y, from.mask, from.w, grad_x);
  if (has_below) finish_for_layer_below(grad_x, below);
}

void run_backward_weight(const ConvRunner& runner, const ConvGeometry& g, const ConvBackwardInputs& from,
                         const Out& grad_w, const Out& grad_bias) {
  const auto& [x, w, mask, grad_y] = from;
  if (runner.library == nullptr && runner.family->backward_weight_and_bias != nullptr)
    return runner.family->backward_weight_and_bias(g, x, grad_y, mask, grad_w, grad_bias);
  if (runner.library != nullptr) {
    const ConvTask task{g, grad_y.dtype(), ConvPass::backward_weight};
    runner.library->run(task, {x, grad_w, grad_y}, runner.library_plan);
  } else {
    runner.family->backward_weight(g, x, grad_y, mask, grad_w);
  }
  if (grad_bias.defined()) conv_backward_bias(grad_y, mask, grad_bias);
}

}  // namespace

void conv_forward(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Out& y) {
  const ConvGeometry& g = plan.geometry;
  const auto run = [&](const ConvRunner& runner) {
    if (runner.library != nullptr) return library_forward(*runner.library, g, x, w, epilogue, y, runner.library_plan);
    runner.family->forward(g, x, w, epilogue, y);
  };
  const auto task = [&](ConvLibrary& library) { return library_forward_task(library, g, x, w, epilogue, y); };
  const TunedWork work{.bias = epilogue.bias.defined(),
                       .relu = epilogue.relu,
                       .mask = epilogue.mask.defined(),
                       .unaligned = unaligned_of(x, w, epilogue.bias, y)};
  run(select(plan,
             {.kind = PassKind::forward,
              .planned = plan.forward,
              .operands = operands_of(plan.dtype, y, x, w),
              .all = operands_of(plan.dtype, y, x, w, epilogue.bias),
              .work = work,
              .library_task = std::cref(task)},
             run));
}

void conv_backward(const ConvPlan& plan, const ConvBackwardInputs& from, const ConvGradients& to,
                   const LayerBelow& below) {
  const ConvGeometry& g = plan.geometry;
  const Tensor &x = from.x, &w = from.w, &grad_y = from.grad_y;
  Tensor copy;
  const auto masked = [&]() -> ConvBackwardInputs {
    if (!copy.defined()) copy = masked_gradient(grad_y, from.mask);
    return {.x = x, .w = w, .grad_y = copy};
  };
  ConvRunner for_input, for_weight;
  // Where one pass needs a copy of the gradient without a mask, all take it: it is read faster. So it is in
  // measurements.
  bool copies = false;
  if (to.x.defined()) {
    const auto run = [&](const ConvRunner& runner) { run_backward_input(runner, g, masked(), below, to.x); };
    const auto task = [&](ConvLibrary& library) {
      return library_backward_input_task(library, g, grad_y, w, x, below, to.x);
    };
    const Operands operands = operands_of(plan.dtype, grad_y, w, to.x);
    const TunedWork work{.mask = below.mask.defined(),
                         .sums = below.grad_bias.defined(),
                         .gate = below.mask.defined() && x.defined(),
                         .unaligned = unaligned_of(grad_y, w, to.x, x)};
    for_input =
        select(plan, {PassKind::backward_input, plan.backward_input, operands, operands, work, std::cref(task)}, run);
    copies = !takes_mask(for_input);
  }
  if (to.w.defined()) {
    const auto run = [&](const ConvRunner& runner) { run_backward_weight(runner, g, masked(), to.w, {}); };
    const Operands operands = operands_of(plan.dtype, grad_y, x, to.w);
    const TunedWork work{.unaligned = unaligned_of(grad_y, x, to.w)};
    for_weight = select(plan, {PassKind::backward_weight, plan.backward_weight, operands, operands, work}, run);
    copies = copies || !takes_mask(for_weight);
  }
  const ConvBackwardInputs open = copies ? masked() : from;
  if (to.x.defined()) run_backward_input(for_input, g, open, below, to.x);
  if (to.w.defined()) {
    run_backward_weight(for_weight, g, open, to.w, to.bias);
  } else if (to.bias.defined()) {
    conv_backward_bias(open.grad_y, open.mask, to.bias);
  }
}

}  // namespace tandem::kernels::cuda
