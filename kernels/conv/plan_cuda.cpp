// Plans for a GPU: who runs each pass, and whether what follows a convolution, pooling or batch norm, is done in the
// same pass, or apart.
#include "tandem/core/memory.h"
#include "tandem/kernels/conv/choice_cuda.h"
#include "tandem/kernels/conv/cudnn/library_passes.h"
#include "tandem/kernels/conv/implementations.h"
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tandem/kernels/norm/batch_norm.h"
#include "tandem/kernels/pool/max_pool2d.h"

#include <algorithm>
#include <vector>

namespace tandem::kernels::cuda {
namespace {

/// Whether these passes run was decided by x and w; a bias at an odd address (a part of something) must not undo that.
Tensor aligned_bias(const Tensor& bias) {
  if (is_aligned(bias)) return bias;
  const MemoryTagScope scope(MemoryTag::workspace);
  return bias.clone();
}

/// The family whose kernels do both; null: they run apart.
using Together = const ConvFamily*;

// Bytes of memory traffic for each output of two bytes that one pass saves. Batch norm reads it once less, for its
// moments. Pooling neither writes nor reads it, and no pass makes its mask from it; backward, the gradient arrives
// masked and summed up for the bias, where it would be read and written for the one and read for the other. Pooling
// without ReLU saves one writing and one reading, and batch norm behind it one reading of a quarter.
double bytes_saved(PassKind both) {
  if (both == PassKind::forward_pool) return 12.0;
  return both == PassKind::forward_moments ? 2.0 : 4.5;
}

bool does_both(PassKind both, const ConvFamily& family) {
  if (both == PassKind::forward_pool) return family.forward_pool != nullptr;
  return both == PassKind::forward_moments ? family.forward_moments != nullptr : family.forward_pool_moments != nullptr;
}

/// The share of the outputs that one pass for both computes.
double computed_share(PassKind both, const ConvGeometry& g) {
  if (both == PassKind::forward_moments) return 1.0;
  const ConvGeometry whole = whole_windows(g);
  return static_cast<double>(whole.p * whole.q) / static_cast<double>(g.p * g.q);
}

/// By rule our kernels where they would convolve anyway, or save more than a faster convolution gains; by measurement,
/// where the tuner has one or makes one by `run(together)`, what is fastest.
template <typename Run>
Together choose_together(PassKind both, const ConvPlan& plan, const Operands& operands, Run&& run) {
  const ConvGeometry& g = plan.geometry;
  const ConvFamily& of_layer = *choose(g, plan.impl, operands).family;
  const ConvFamily& family = family_for(both, of_layer, g, operands);
  if (!does_both(both, family)) return nullptr;
  const FusionSavings savings{bytes_saved(both), family, computed_share(both, g)};
  const bool saves_more = plan.impl != ConvImpl::cudnn && pays_beside_library(g, savings);
  const bool others_are_faster = select_library(g, plan.impl, ConvPass::forward, operands) != nullptr ||
                                 family_for(PassKind::forward, of_layer, g, operands).has_library_rate;
  const Together rule = others_are_faster && !saves_more ? nullptr : &family;
  if (plan.impl != ConvImpl::automatic || !conv_tuner().is_active()) return rule;
  std::vector<Together> all{&family};
  if (&family != &of_layer) all.push_back(&of_layer);
  all.push_back(nullptr);
  std::vector<TuningCandidate> candidates;
  for (const Together one : all)
    candidates.push_back({one != nullptr ? one->name : "apart", [&run, one] { run(one); }});
  const auto fallback = static_cast<std::size_t>(std::find(all.begin(), all.end(), rule) - all.begin());
  return all[conv_tuner().choose({DeviceType::cuda, both, plan.dtype, g}, plan.device, candidates, fallback)];
}

Tensor scratch(const Shape& shape, DType dtype, const Tensor& like, Layout layout = Layout::channels_last) {
  return Tensor::empty(shape, {.dtype = dtype, .layout = layout, .device = like.device()});
}

Together choose_pool(const ConvPlan& plan, const Operands& operands, const Tensor& x, const Tensor& w) {
  const ConvGeometry& g = plan.geometry;
  if (g.p < 2 || g.q < 2) return nullptr;
  return choose_together(PassKind::forward_pool, plan, operands, [&](const Together together) {
    const MemoryTagScope scope(MemoryTag::workspace);
    const Shape shape{g.n, g.k, g.p, g.q}, pooled{g.n, g.k, g.p / 2, g.q / 2};
    const Tensor y = scratch(pooled, x.dtype(), x), positions = scratch(pooled, DType::u8, x);
    const Out mask(scratch(conv_mask_shape(together != nullptr ? pooled : shape), DType::u8, x, Layout::row_major));
    if (together != nullptr) return together->forward_pool(g, x, w, {}, {Out(y), Out(positions), mask});
    const Tensor whole = scratch(shape, x.dtype(), x);
    conv_forward(plan, x, w, {.relu = true, .mask = mask}, Out(whole));
    kernels::max_pool2d_forward(whole, {.kernel = 2, .stride = 2}, Out(y), Out(positions));
  });
}

Together choose_moments(const ConvPlan& plan, const Operands& operands, const Tensor& x, const Tensor& w) {
  const ConvGeometry& g = plan.geometry;
  if (g.n * g.p * g.q < 2) return nullptr;  // no variance: batch norm says so
  return choose_together(PassKind::forward_moments, plan, operands, [&](const Together together) {
    const MemoryTagScope scope(MemoryTag::workspace);
    const Shape shape{g.n, g.k, g.p, g.q};
    const Tensor y = scratch(shape, x.dtype(), x), normed = scratch(shape, x.dtype(), x);
    const Tensor mean = scratch({g.k}, DType::f32, x, Layout::row_major), inverse_std = empty_like(mean);
    if (together == nullptr) {
      conv_forward(plan, x, w, {}, Out(y));
      return kernels::batch_norm_forward_train(y, {}, {}, {}, {}, {}, Out(normed), Out(mean), Out(inverse_std));
    }
    const Tensor moments = scratch({3, together->moment_parts(g), g.k}, DType::f64, x, Layout::row_major);
    together->forward_moments(g, x, w, {}, Out(y), Out(moments));
    kernels::batch_norm_forward_from_moments(y, moments, {}, {}, {}, {}, {}, Out(normed), Out(mean), Out(inverse_std));
  });
}

Together choose_pool_moments(const ConvPlan& plan, const Operands& operands, const Tensor& x, const Tensor& w) {
  const ConvGeometry& g = plan.geometry;
  if (g.n * (g.p / 2) * (g.q / 2) < 2) return nullptr;  // no window, or no variance
  return choose_together(PassKind::forward_pool_moments, plan, operands, [&](const Together together) {
    const MemoryTagScope scope(MemoryTag::workspace);
    const Shape shape{g.n, g.k, g.p, g.q}, pooled{g.n, g.k, g.p / 2, g.q / 2};
    const Tensor y = scratch(pooled, x.dtype(), x), normed = scratch(pooled, x.dtype(), x);
    const Tensor positions = scratch(pooled, DType::u8, x);
    const Tensor mean = scratch({g.k}, DType::f32, x, Layout::row_major), inverse_std = empty_like(mean);
    if (together == nullptr) {
      const Tensor whole = scratch(shape, x.dtype(), x);
      conv_forward(plan, x, w, {}, Out(whole));
      kernels::max_pool2d_forward(whole, {.kernel = 2, .stride = 2}, Out(y), Out(positions));
      return kernels::batch_norm_forward_train(y, {}, {}, {}, {}, {}, Out(normed), Out(mean), Out(inverse_std));
    }
    const Tensor moments = scratch({3, together->pool_moment_parts(g), g.k}, DType::f64, x, Layout::row_major);
    together->forward_pool_moments(g, x, w, {}, {Out(y), Out(positions), Out(moments)});
    kernels::batch_norm_forward_from_moments(y, moments, {}, {}, {}, {}, {}, Out(normed), Out(mean), Out(inverse_std));
  });
}

/// Whether gradients of this convolution are computed by our own kernels, which can leave out what no window has.
bool gradients_are_ours(const ConvRequest& request, const ConvPlan& plan, const Operands& operands) {
  const bool has_library = gpu_conv_library() != nullptr;
  if (has_library && plan.impl == ConvImpl::automatic && conv_tuner().is_active()) return false;  // it may take it
  const auto is_ours = [&](bool requested, PassKind pass) {
    return !requested || choose_runner(pass, plan.geometry, plan.impl, operands, operands).library == nullptr;
  };
  return is_ours(request.grad_x, PassKind::backward_input) && is_ours(request.grad_w, PassKind::backward_weight);
}

}  // namespace

void plan_conv(const ConvRequest& request, const Tensor& x, const Tensor& w, ConvPlan& plan) {
  const PassKind forward = request.forward;
  const Operands here = operands_of(plan.dtype, x, w), aligned{plan.dtype, plan.device};
  Together together = nullptr;
  if (forward == PassKind::forward_pool) together = choose_pool(plan, here, x, w);
  if (forward == PassKind::forward_moments) together = choose_moments(plan, here, x, w);
  if (forward == PassKind::forward_pool_moments) together = choose_pool_moments(plan, here, x, w);
  plan.fuses_pool = together != nullptr && forward != PassKind::forward_moments;
  if (together != nullptr && forward == PassKind::forward_moments)
    plan.moment_parts = together->moment_parts(plan.geometry);
  if (together != nullptr && forward == PassKind::forward_pool_moments) {
    plan.moment_parts = together->pool_moment_parts(plan.geometry);
    if (gradients_are_ours(request, plan, aligned)) plan.geometry = whole_windows(plan.geometry);
  }
  const ConvGeometry& g = plan.geometry;
  const auto runner = [&](PassKind pass) { return choose_runner(pass, g, plan.impl, aligned, aligned); };
  plan.forward = together != nullptr ? ConvRunner{.family = together} : runner(PassKind::forward);
  if (request.grad_x) plan.backward_input = runner(PassKind::backward_input);
  if (request.grad_w) plan.backward_weight = runner(PassKind::backward_weight);
}

bool fuses_layer_below(const ConvPlan& plan, const Tensor& x, const Tensor& w) {
  const ConvRunner& runner = plan.backward_input;
  if (!is_aligned(x) || !is_aligned(w)) return false;
  // cuDNN's graphs that do both took much longer than its convolution and other passes do (docs/libraries.md). The
  // tuner compares these graphs with our kernels, but not with cuDNN's convolution alone.
  if (runner.library != nullptr)
    return conv_tuner().is_active() && library_fuses_layer_below(*runner.library, plan.geometry, x, w);
  return runner.family->backward_input_below != nullptr;
}

void conv_pool_forward(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias,
                       const PooledOutput& to) {
  plan.forward.family->forward_pool(plan.geometry, x, w, aligned_bias(bias), to);
}

void conv_forward_moments(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias, const Out& y,
                          const Out& moments) {
  plan.forward.family->forward_moments(plan.geometry, x, w, aligned_bias(bias), y, moments);
}

void conv_pool_forward_moments(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias,
                               const PooledMomentsOutput& to) {
  plan.forward.family->forward_pool_moments(plan.geometry, x, w, aligned_bias(bias), to);
}

}  // namespace tandem::kernels::cuda
