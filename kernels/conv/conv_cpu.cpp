// Convolution on the CPU: the choice among the fast implementations, and weights of half types in float.
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/conv/families.h"
#include "tandem/kernels/conv/implementations.h"
#include "tandem/kernels/conv/sign_mask.h"
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tandem/kernels/gemm/float_operands.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace tandem::kernels::cpu {
namespace {

bool is_empty(const ConvGeometry& g) { return g.input_numel() == 0 || g.output_numel() == 0; }

/// The family of this name, or null.
template <typename T>
const ConvFamily<T>* find_family(std::string_view name) {
  for (const ConvFamily<T>& family : conv_families<T>())
    if (family.name == name) return &family;
  return nullptr;
}

/// The family that `impl` stands for, or null.
template <typename T>
const ConvFamily<T>* find_family(ConvImpl impl) {
  for (const ConvFamily<T>& family : conv_families<T>())
    if (family.impl == impl) return &family;
  return nullptr;
}

/// The family for a geometry with elements, by rule: the fastest that `impl` leaves.
template <typename T>
const ConvFamily<T>& choose_family(const ConvGeometry& g, ConvImpl impl) {
  const std::span<const ConvFamily<T>> all = conv_families<T>();
  for (auto family = all.rbegin(); family != all.rend(); ++family) {
    const bool is_left = impl == ConvImpl::automatic || (impl == ConvImpl::fused && family->is_ours);
    const bool runs = family->impl == impl || (is_left && family->pays(g));
    if (runs && family->supports(g)) return *family;
  }
  return all.front();
}

/// The family for `pass`: by measurement where the tuner has one or makes one, else by rule. `run` does the pass by the
/// family it is given, and `work` what that is.
template <typename T, typename Run>
const ConvFamily<T>& select(const ConvPlan& plan, std::string_view rule, PassKind pass, const TunedWork& work,
                            Run&& run) {
  const ConvFamily<T>& by_rule = *find_family<T>(rule);
  if (plan.impl != ConvImpl::automatic || !conv_tuner().is_active()) return by_rule;
  const ConvGeometry& g = plan.geometry;
  std::vector<const ConvFamily<T>*> all;
  std::vector<TuningCandidate> candidates;
  std::size_t fallback = 0;
  for (const ConvFamily<T>& family : conv_families<T>()) {
    if (!family.supports(g)) continue;
    if (&family == &by_rule) fallback = all.size();
    all.push_back(&family);
    candidates.push_back({family.name, [&run, &family] { run(family); }});
  }
  return *all[conv_tuner().choose({DeviceType::cpu, pass, dtype_of<T>, g, work}, {}, candidates, fallback)];
}

}  // namespace

std::string_view choose_conv(const ConvGeometry& g, DType dtype, ConvImpl impl) {
  if (impl == ConvImpl::onednn) {
    const ConvFamily<float>* const library = find_family<float>(impl);
    require(library != nullptr, "conv2d: this build has no oneDNN; choose impl auto");
    require(dtype == DType::f32 && (library->supports(g) || is_empty(g)),
            "conv2d: oneDNN is called for f32 alone, not for {}; choose impl auto", name_of(dtype));
  }
  if (!computes_in_float(dtype) || is_empty(g) || impl == ConvImpl::reference) return kPlainLoops;
  std::string_view chosen;
  dispatch_float(dtype, "conv2d",
                 [&](auto tag) { chosen = choose_family<typename decltype(tag)::type>(g, impl).name; });
  return chosen;
}

void conv_forward(const ConvPlan& plan, std::string_view rule, const Tensor& x, const Tensor& w, const Tensor& bias,
                  bool relu, const Out& mask, const Out& y) {
  dispatch_float(plan.dtype, "conv_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const FloatInput<T> weights(w), biases(bias);
    const ConvEpilogue epilogue{.bias = biases.data(), .relu = relu, .mask = data_or_null<std::uint8_t>(mask)};
    const auto run = [&](const ConvFamily<T>& family) {
      family.forward(plan.geometry, x.data<T>(), weights.data(), epilogue, y.data<T>());
    };
    const TunedWork work{.bias = bias.defined(), .relu = relu, .mask = mask.defined()};
    run(select<T>(plan, rule, PassKind::forward, work, run));
  });
}

void conv_backward(const ConvPlan& plan, std::string_view rule, const ConvBackwardInputs& from,
                   const ConvGradients& to) {
  const ConvGeometry& g = plan.geometry;
  dispatch_float(plan.dtype, "conv_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MaskedGradient<T> gradient{from.grad_y.data<T>(), data_or_null<std::uint8_t>(from.mask)};
    const FloatOutput<T> weight_sums(to.w), bias_sums(to.bias);
    if (to.w.defined()) {
      const auto run = [&](const ConvFamily<T>& family) {
        family.backward_weight(g, from.x.data<T>(), gradient, weight_sums.data(), bias_sums.data());
      };
      const TunedWork work{.mask = from.mask.defined(), .sums = to.bias.defined()};
      run(select<T>(plan, rule, PassKind::backward_weight, work, run));
    } else if (to.bias.defined()) {
      const DenseGradient<T> dense(gradient, g, false);
      sum_rows(dense.gradient.data, g.n * g.p * g.q, g.k, bias_sums.data());
    }
    weight_sums.finish();
    bias_sums.finish();
    if (!to.x.defined()) return;
    const FloatInput<T> weights(from.w);
    const auto run = [&](const ConvFamily<T>& family) {
      family.backward_input(g, gradient, weights.data(), to.x.data<T>());
    };
    run(select<T>(plan, rule, PassKind::backward_input, {.mask = from.mask.defined()}, run));
  });
}

std::int64_t conv_products(const ConvGeometry& g, DType dtype, ConvImpl impl, PassKind pass, const TunedWork& work) {
  // Every family but that of the definition has floats, too.
  const ConvFamily<float>* family = find_family<float>(choose_conv(g, dtype, impl));
  if (impl == ConvImpl::automatic && conv_tuner().is_active()) {
    const auto measured = conv_tuner().results();
    const auto found = measured.find({DeviceType::cpu, pass, dtype, g, work});
    if (found != measured.end())
      if (const ConvFamily<float>* const chosen = find_family<float>(found->second.chosen)) family = chosen;
  }
  if (family == nullptr) family = &conv_families<float>().front();  // the reference
  return family->products(g, pass);
}

void conv_backward_bias(const Tensor& grad_y, const Out& grad_bias) {
  dispatch_float(grad_y.dtype(), "conv_backward_bias", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const FloatOutput<T> sums(grad_bias);
    sum_rows(grad_y.data<T>(), grad_y.numel() / grad_y.size(1), grad_y.size(1), sums.data());
    sums.finish();
  });
}

void apply_mask(const Out& gradient, const Tensor& mask) {
  dispatch_float(gradient.dtype(), "apply_mask", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MaskedGradient<T> masked{gradient.data<T>(), mask.data<std::uint8_t>()};
    apply_sign_mask(masked, gradient.numel(), gradient.data<T>());
  });
}

}  // namespace tandem::kernels::cpu
