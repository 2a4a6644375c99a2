// Convolution on the CPU: the choice among the fast implementations, and weights of half types in float.
#include "core/parallel.h"
#include "kernels/cast/float_runs.h"
#include "kernels/conv/implementations.h"
#include "kernels/conv/sign_mask.h"
#include "kernels/conv/tuning/tuner.h"
#include "kernels/gemm/float_operands.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace tandem::kernels::cpu {
namespace {

constexpr bool kHasOneDnn = TANDEM_HAS_ONEDNN;

bool is_empty(const ConvGeometry& g) { return g.input_numel() == 0 || g.output_numel() == 0; }

bool library_supports([[maybe_unused]] const ConvGeometry& g) {
#if TANDEM_HAS_ONEDNN
  return onednn::supports(g);
#else
  return false;
#endif
}

/// One implementation's three passes over images of T.
template <typename T>
struct Passes {
  decltype(&direct::forward<T>) forward;
  decltype(&direct::backward_input<T>) backward_input;
  decltype(&direct::backward_weight<T>) backward_weight;
};
template <typename T>
constexpr Passes<T> kDirect{direct::forward<T>, direct::backward_input<T>, direct::backward_weight<T>};
template <typename T>
constexpr Passes<T> kWinograd{winograd::forward<T>, winograd::backward_input<T>, winograd::backward_weight<T>};

#if TANDEM_HAS_ONEDNN
constexpr Passes<float> kOneDnn{onednn::forward, onednn::backward_input, onednn::backward_weight};
#endif

/// Whether Winograd's algorithm runs a geometry for which conv_supports is true, by rule.
bool by_rule_winograd(const ConvGeometry& g, ConvImpl impl) {
  if (impl == ConvImpl::onednn || impl == ConvImpl::direct || !winograd::supports(g)) return false;
  return impl == ConvImpl::winograd || winograd::pays(g);
}

/// The passes that run a geometry for which conv_supports is true, by rule.
template <typename T>
const Passes<T>& by_rule(const ConvGeometry& g, ConvImpl impl) {
  const bool by_winograd = by_rule_winograd(g, impl);
#if TANDEM_HAS_ONEDNN
  if constexpr (is_float<T>) {
    if (impl == ConvImpl::onednn) return kOneDnn;
    // Measured: with few input channels our direct kernels, which fuse the mask, are level; otherwise the library wins.
    // That is where each thread has images of its own, not only rows of one.
    const bool library_wins = !by_winograd && library_supports(g) && (g.groups > 1 || g.c >= 8) &&
                              (tandem::detail::in_parallel() || g.n >= num_threads());
    if (impl == ConvImpl::automatic && library_wins) return kOneDnn;
  }
#endif
  return by_winograd ? kWinograd<T> : kDirect<T>;
}

/// The passes for `pass`: by measurement where the tuner has one or makes one, else by rule. `run` does the pass by the
/// passes it is given, and `work` what that is.
template <typename T, typename Run>
const Passes<T>& select(const ConvGeometry& g, ConvImpl impl, TunedPass pass, const TunedWork& work, Run&& run) {
  const Passes<T>& rule = by_rule<T>(g, impl);
  if (impl != ConvImpl::automatic || !conv_tuner().is_active()) return rule;
  std::vector<const Passes<T>*> all{&kDirect<T>};
  std::vector<std::string_view> names{"direct"};
  if (winograd::supports(g)) {
    all.push_back(&kWinograd<T>);
    names.push_back("winograd");
  }
#if TANDEM_HAS_ONEDNN
  if constexpr (is_float<T>) {
    if (library_supports(g)) {
      all.push_back(&kOneDnn);
      names.push_back("onednn");
    }
  }
#endif
  std::vector<TuningCandidate> candidates;
  for (std::size_t i = 0; i < all.size(); ++i)
    candidates.push_back({names[i], [&run, passes = all[i]] { run(*passes); }});
  const auto fallback = static_cast<std::size_t>(std::find(all.begin(), all.end(), &rule) - all.begin());
  return *all[conv_tuner().choose({DeviceType::cpu, pass, dtype_of<T>, g, work}, {}, candidates, fallback)];
}

}  // namespace

bool conv_supports(const ConvGeometry& g, DType dtype, ConvImpl impl) {
  require(impl != ConvImpl::onednn || kHasOneDnn, "conv2d: this build has no oneDNN; use --conv-impl auto");
  require(impl != ConvImpl::onednn || (dtype == DType::f32 && (library_supports(g) || is_empty(g))),
          "conv2d: oneDNN is called for f32 alone, not for {}; use --conv-impl auto", name_of(dtype));
  return computes_in_float(dtype) && !is_empty(g) && impl != ConvImpl::reference;
}

void conv_forward(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Tensor& bias, bool relu,
                  const Tensor& mask, const Tensor& y) {
  dispatch_float(y.dtype(), "conv_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const FloatInput<T> weights(w), biases(bias);
    const ConvEpilogue epilogue{.bias = biases.data(), .relu = relu, .mask = data_or_null<std::uint8_t>(mask)};
    const auto run = [&](const Passes<T>& passes) {
      passes.forward(g, x.data<T>(), weights.data(), epilogue, y.data<T>());
    };
    const TunedWork work{.bias = bias.defined(), .relu = relu, .mask = mask.defined()};
    run(select<T>(g, impl, TunedPass::forward, work, run));
  });
}

void conv_backward(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Tensor& mask,
                   const Tensor& grad_y, const Tensor& grad_x, const Tensor& grad_w, const Tensor& grad_bias) {
  dispatch_float(grad_y.dtype(), "conv_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MaskedGradient<T> gradient{grad_y.data<T>(), data_or_null<std::uint8_t>(mask)};
    const FloatOutput<T> weight_sums(grad_w), bias_sums(grad_bias);
    if (grad_w.defined()) {
      const auto run = [&](const Passes<T>& passes) {
        passes.backward_weight(g, x.data<T>(), gradient, weight_sums.data(), bias_sums.data());
      };
      const TunedWork work{.mask = mask.defined(), .sums = grad_bias.defined()};
      run(select<T>(g, impl, TunedPass::backward_weight, work, run));
    } else if (grad_bias.defined()) {
      const DenseGradient<T> dense(gradient, g, false);
      sum_rows(dense.gradient.data, g.n * g.p * g.q, g.k, bias_sums.data());
    }
    weight_sums.finish();
    bias_sums.finish();
    if (!grad_x.defined()) return;
    const FloatInput<T> weights(w);
    const auto run = [&](const Passes<T>& passes) {
      passes.backward_input(g, gradient, weights.data(), grad_x.data<T>());
    };
    run(select<T>(g, impl, TunedPass::backward_input, {.mask = mask.defined()}, run));
  });
}

std::int64_t conv_products(const ConvGeometry& g, DType dtype, ConvImpl impl, TunedPass pass, const TunedWork& work) {
  bool by_winograd = conv_supports(g, dtype, impl) && by_rule_winograd(g, impl);
  if (impl == ConvImpl::automatic && conv_tuner().is_active()) {
    const auto measured = conv_tuner().results();
    const auto found = measured.find({DeviceType::cpu, pass, dtype, g, work});
    if (found != measured.end()) by_winograd = found->second.chosen == "winograd";
  }
  return by_winograd ? winograd::products(g, pass) : g.output_numel() * g.group_c() * g.r * g.s;
}

void conv_backward_bias(const Tensor& grad_y, const Tensor& grad_bias) {
  dispatch_float(grad_y.dtype(), "conv_backward_bias", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const FloatOutput<T> sums(grad_bias);
    sum_rows(grad_y.data<T>(), grad_y.numel() / grad_y.size(1), grad_y.size(1), sums.data());
    sums.finish();
  });
}

void apply_mask(const Tensor& gradient, const Tensor& mask) {
  dispatch_float(gradient.dtype(), "apply_mask", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MaskedGradient<T> masked{gradient.data<T>(), mask.data<std::uint8_t>()};
    apply_sign_mask(masked, gradient.numel(), gradient.data<T>());
  });
}

}  // namespace tandem::kernels::cpu
