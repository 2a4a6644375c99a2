// Convolution on a GPU: the passes, each by who is chosen for it.
#include "core/memory.h"
#include "kernels/conv/choice_cuda.h"
#include "kernels/conv/cudnn/library_passes.h"
#include "kernels/conv/implementations.h"
#include "kernels/conv/tuning/tuner.h"
#include "kernels/gemm/column_sum.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace tandem::kernels::cuda {
namespace {

/// One family's three passes.
struct Passes {
  decltype(&naive::forward) forward;
  decltype(&naive::backward_input) backward_input;
  decltype(&naive::backward_weight) backward_weight;
};

const Passes& passes_of(Family family) {
  static constexpr Passes kPasses[] = {
      {naive::forward, naive::backward_input, naive::backward_weight},
      {tile::forward, tile::backward_input, tile::backward_weight},
      {few_channels::forward, tile::backward_input, few_channels::backward_weight},
      {implicit_gemm::forward, implicit_gemm::backward_input, implicit_gemm::backward_weight},
      {stationary::forward, stationary::backward_input, stationary::backward_weight},
      {warpgroup::forward, warpgroup::backward_input, warpgroup::backward_weight},
  };
  return kPasses[static_cast<std::size_t>(family)];
}

/// Who runs a pass: the library, or a family of our kernels.
struct Runner {
  ConvLibrary* library = nullptr;
  Family family = Family::naive;
  int plan = 0;  // of the library

  std::string_view name() const {
    constexpr std::string_view kPlans[kMostPlans] = {"cudnn",   "cudnn-1", "cudnn-2", "cudnn-3",
                                                     "cudnn-4", "cudnn-5", "cudnn-6", "cudnn-7"};
    return library != nullptr ? kPlans[plan] : name_of(family);
  }

  /// Whether a gradient may come with its mask.
  bool takes_mask() const { return library == nullptr && family < Family::implicit_gemm; }

  /// Whether one reading of the gradient serves weights and bias.
  bool sums_bias_with_weight() const { return library == nullptr && family == Family::few_channels; }

  friend bool operator==(const Runner&, const Runner&) = default;
};

/// One pass, as far as the choice of its runner goes.
struct Pass {
  TunedPass tuned;
  ConvPass library;  // what the library is asked for
  ConvTensors tensors;
  std::initializer_list<Tensor> all;  // all that a family must be able to read and write
  TunedWork work = {};
  std::function<ConvTask(ConvLibrary&)> library_task = {};  // what `run` gives to a library; empty: `library`

  ConvTask task_for(ConvLibrary& of, const ConvGeometry& g) const {
    return library_task ? library_task(of) : ConvTask{g, tensors.y.dtype(), library};
  }
};

/// A bit for each tensor that begins at no multiple of 16 bytes.
std::uint8_t unaligned_of(std::initializer_list<Tensor> tensors) {
  unsigned bits = 0, bit = 1;
  for (const Tensor& tensor : tensors) {
    if (tensor.defined() && reinterpret_cast<std::uintptr_t>(tensor.raw_data()) % 16 != 0) bits |= bit;
    bit *= 2;
  }
  return static_cast<std::uint8_t>(bits);
}

/// Images with few channels are the data: their gradient has no kernels of its own.
Family family_of(const ConvGeometry& g, ConvImpl impl, const Pass& pass) {
  const DType dtype = pass.tensors.y.dtype();
  const Family family = choose(g, impl, dtype, pass.all);
  if (family == Family::few_channels && pass.tuned == TunedPass::backward_input) return Family::tile;
  constexpr StationaryPass kStationary[] = {StationaryPass::forward, StationaryPass::backward_input,
                                            StationaryPass::backward_weight};  // by TunedPass
  if (family == Family::implicit_gemm &&
      is_for_stationary(kStationary[static_cast<std::size_t>(pass.tuned)], g, dtype, pass.all))
    return Family::stationary;
  return family;
}

Runner runner_by_rule(const ConvGeometry& g, ConvImpl impl, const Pass& pass) {
  if (ConvLibrary* const library = select_library(g, impl, pass.library, pass.tensors)) return {.library = library};
  return {.family = family_of(g, impl, pass)};
}

/// Everyone who can run a pass for ConvImpl::automatic; the naive family only where there is no other of ours.
std::vector<Runner> all_runners(const ConvGeometry& g, const Pass& pass) {
  const DType dtype = pass.tensors.y.dtype();
  std::vector<Runner> all;
  const Family fastest = family_of(g, ConvImpl::automatic, pass);
  all.push_back({.family = fastest});
  if (fastest > Family::implicit_gemm) all.push_back({.family = Family::implicit_gemm});
  if (fastest > Family::tile) all.push_back({.family = Family::tile});
  ConvLibrary* const library = gpu_conv_library();
  if (library != nullptr && library_takes(*library, {g, dtype, pass.library}, pass.tensors)) {
    const int plans = library->plan_count(pass.task_for(*library, g), pass.tensors.y.device());
    for (int plan = 0; plan < plans; ++plan) all.push_back({.library = library, .plan = plan});
  }
  return all;
}

/// By measurement where the tuner has one or makes one by `run(runner)`, else by rule. Where cuDNN was asked for, the
/// fastest of its plans.
template <typename Run>
Runner select(const ConvGeometry& g, ConvImpl impl, const Pass& pass, Run&& run) {
  const Runner rule = runner_by_rule(g, impl, pass);
  const bool measured = impl == ConvImpl::automatic || rule.library != nullptr;
  if (!measured || !conv_tuner().is_active() || g.output_numel() == 0 || g.input_numel() == 0) return rule;
  const std::vector<Runner> all = all_runners(g, pass);
  std::vector<TuningCandidate> candidates;
  for (const Runner& runner : all) candidates.push_back({runner.name(), [&run, runner] { run(runner); }});
  const auto fallback = static_cast<std::size_t>(std::find(all.begin(), all.end(), rule) - all.begin());
  const TuningKey key{DeviceType::cuda, pass.tuned, pass.tensors.y.dtype(), g, pass.work};
  const auto allowed = [&](std::size_t i) { return impl == ConvImpl::automatic || all[i].library != nullptr; };
  return all[conv_tuner().choose(key, pass.tensors.y.device(), candidates, fallback, allowed)];
}

void run_backward_input(const Runner& runner, const ConvGeometry& g, const Tensor& x, const Tensor& grad_y,
                        const Tensor& mask, const Tensor& w, const LayerBelow& below, const Tensor& grad_x) {
  const bool has_below = below.mask.defined() || below.grad_bias.defined();
  if (runner.library != nullptr) {
    return library_backward_input(*runner.library, g, grad_y, w, x, below, grad_x, runner.plan);
  } else if (has_below && runner.family == Family::implicit_gemm) {
    return implicit_gemm::backward_input_by({}, g, grad_y, mask, w, below, grad_x);
  } else if (has_below && runner.family == Family::stationary) {
    return stationary::backward_input_for(g, grad_y, mask, w, below, grad_x);
  } else if (has_below && runner.family == Family::warpgroup) {
    return warpgroup::backward_input_for(g, grad_y, mask, w, below, grad_x);
  } else {
    passes_of(runner.family).backward_input(g, grad_y, mask, w, grad_x);
  }
  if (has_below) finish_for_layer_below(grad_x, below);
}

void run_backward_weight(const Runner& runner, const ConvGeometry& g, const Tensor& x, const Tensor& grad_y,
                         const Tensor& mask, const Tensor& grad_w, const Tensor& grad_bias) {
  if (runner.sums_bias_with_weight())
    return few_channels::backward_weight_and_bias(g, x, grad_y, mask, grad_w, grad_bias);
  if (runner.library != nullptr) {
    runner.library->run({g, grad_y.dtype(), ConvPass::backward_weight}, {x, grad_w, grad_y}, runner.plan);
  } else {
    passes_of(runner.family).backward_weight(g, x, grad_y, mask, grad_w);
  }
  if (grad_bias.defined()) conv_backward_bias(grad_y, mask, grad_bias);
}

}  // namespace

void conv_forward(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Epilogue& epilogue,
                  const Tensor& y) {
  const auto run = [&](const Runner& runner) {
    if (runner.library != nullptr) return library_forward(*runner.library, g, x, w, epilogue, y, runner.plan);
    passes_of(runner.family).forward(g, x, w, epilogue, y);
  };
  const auto task = [&](ConvLibrary& library) { return library_forward_task(library, g, x, w, epilogue, y); };
  const TunedWork work{.bias = epilogue.bias.defined(),
                       .relu = epilogue.relu,
                       .mask = epilogue.mask.defined(),
                       .unaligned = unaligned_of({x, w, epilogue.bias, y})};
  run(select(g, impl,
             {TunedPass::forward, ConvPass::forward, {x, w, y}, {x, w, epilogue.bias, y}, work, std::cref(task)}, run));
}

void conv_backward(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Tensor& mask,
                   const Tensor& grad_y, const Tensor& grad_x, const Tensor& grad_w, const Tensor& grad_bias,
                   const LayerBelow& below) {
  Tensor copy;
  const auto masked = [&]() -> const Tensor& {
    if (!copy.defined()) copy = masked_gradient(grad_y, mask);
    return copy;
  };
  Runner for_input, for_weight;
  // Where one pass needs a copy of the gradient without a mask, all take it: it is read faster. So it is in
  // measurements.
  bool copies = false;
  if (grad_x.defined()) {
    const auto run = [&](const Runner& runner) { run_backward_input(runner, g, x, masked(), {}, w, below, grad_x); };
    const auto task = [&](ConvLibrary& library) {
      return library_backward_input_task(library, g, grad_y, w, x, below, grad_x);
    };
    const TunedWork work{.mask = below.mask.defined(),
                         .sums = below.grad_bias.defined(),
                         .gate = below.mask.defined() && x.defined(),
                         .unaligned = unaligned_of({grad_y, w, grad_x, x})};
    for_input = select(g, impl,
                       {TunedPass::backward_input,
                        ConvPass::backward_input,
                        {grad_x, w, grad_y},
                        {grad_y, w, grad_x},
                        work,
                        std::cref(task)},
                       run);
    copies = !for_input.takes_mask();
  }
  if (grad_w.defined()) {
    const auto run = [&](const Runner& runner) { run_backward_weight(runner, g, x, masked(), {}, grad_w, {}); };
    for_weight = select(g, impl,
                        {TunedPass::backward_weight,
                         ConvPass::backward_weight,
                         {x, grad_w, grad_y},
                         {grad_y, x, grad_w},
                         {.unaligned = unaligned_of({grad_y, x, grad_w})}},
                        run);
    copies = copies || !for_weight.takes_mask();
  }
  const Tensor gradient = copies ? masked() : grad_y, open = copies ? Tensor() : mask;
  if (grad_x.defined()) run_backward_input(for_input, g, x, gradient, open, w, below, grad_x);
  if (grad_w.defined()) {
    run_backward_weight(for_weight, g, x, gradient, open, grad_w, grad_bias);
  } else if (grad_bias.defined()) {
    conv_backward_bias(gradient, open, grad_bias);
  }
}

bool fuses_layer_below(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w) {
  ConvLibrary* const library = select_library(g, impl, ConvPass::backward_input, {x, w, x});
  if (library != nullptr) return library_fuses_layer_below(*library, g, x, w);
  const Family family = choose(g, impl, x.dtype(), {x, w});
  return family == Family::implicit_gemm || family == Family::warpgroup;
}

void conv_backward_bias(const Tensor& grad_y, const Tensor& mask, const Tensor& grad_bias) {
  column_sum(grad_y.size(0) * grad_y.size(2) * grad_y.size(3), grad_y.size(1), grad_y, mask, grad_bias);
}

}  // namespace tandem::kernels::cuda
