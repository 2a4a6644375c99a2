// Convolution on a GPU and what follows it, pooling or batch norm: in one pass of ours, or apart.
#include "core/memory.h"
#include "kernels/conv/choice_cuda.h"
#include "kernels/conv/tuning/tuner.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/pool/max_pool2d.h"

#include <algorithm>
#include <vector>

namespace tandem::kernels::cuda {
namespace {

/// Whether these passes run was decided by x and w; a bias at an odd address (a part of something) must not undo that.
Tensor aligned_bias(const Tensor& bias) {
  if (!bias.defined() || reinterpret_cast<std::uintptr_t>(bias.raw_data()) % 16 == 0) return bias;
  const MemoryTagScope scope(MemoryTag::workspace);
  return bias.clone();
}

/// The family whose kernels do both, or none: then they run apart.
using Together = std::optional<Family>;

// Bytes of memory traffic for each output of two bytes that one pass saves. Batch norm reads it once less, for its
// moments. Pooling neither writes nor reads it, and no pass makes its mask from it; backward, the gradient arrives
// masked and summed up for the bias, where it would be read and written for the one and read for the other.
constexpr double kSavedByMoments = 2, kSavedByPool = 12;

/// By rule our kernels where they would convolve anyway, or save more than a library gains; by measurement, where the
/// tuner has one or makes one by `run(together)`, what is fastest.
template <typename Run>
Together choose_together(TunedPass tuned, const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w,
                         Run&& run) {
  if (choose(g, impl, x.dtype(), {x, w}) != Family::implicit_gemm) return {};
  const StationaryPass pass = tuned == TunedPass::forward_pool ? StationaryPass::forward_pool : StationaryPass::forward;
  const Family family = is_for_stationary(pass, g, x.dtype(), {x, w}) ? Family::stationary : Family::implicit_gemm;
  const FusionSavings savings{tuned == TunedPass::forward_pool ? kSavedByPool : kSavedByMoments, family};
  const bool saves_more = impl == ConvImpl::automatic && pays_beside_library(g, savings);
  const bool by_library = !saves_more && select_library(g, impl, ConvPass::forward, {x, w, x}) != nullptr;
  const Together rule = by_library ? Together() : Together(family);
  if (impl != ConvImpl::automatic || !conv_tuner().is_active()) return rule;
  std::vector<Together> all{family};
  if (family != Family::implicit_gemm) all.push_back(Family::implicit_gemm);
  all.push_back({});
  std::vector<TuningCandidate> candidates;
  for (const Together& one : all) candidates.push_back({one ? name_of(*one) : "apart", [&run, one] { run(one); }});
  const auto fallback = static_cast<std::size_t>(std::find(all.begin(), all.end(), rule) - all.begin());
  return all[conv_tuner().choose({DeviceType::cuda, tuned, x.dtype(), g}, x.device(), candidates, fallback)];
}

Tensor scratch(const Shape& shape, DType dtype, const Tensor& like, Layout layout = Layout::channels_last) {
  return Tensor::empty(shape, {.dtype = dtype, .layout = layout, .device = like.device()});
}

void pool_by(Family family, const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias,
             const PooledOutput& to) {
  if (family == Family::stationary) return stationary::forward_pool(g, x, w, bias, to);
  implicit_gemm::forward_pool_by({}, g, x, w, bias, to);
}

Together choose_pool(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w) {
  if (g.p < 2 || g.q < 2) return {};
  return choose_together(TunedPass::forward_pool, g, impl, x, w, [&](const Together& together) {
    const MemoryTagScope scope(MemoryTag::workspace);
    const Shape shape{g.n, g.k, g.p, g.q}, pooled{g.n, g.k, g.p / 2, g.q / 2};
    const Tensor y = scratch(pooled, x.dtype(), x), positions = scratch(pooled, DType::u8, x);
    const Tensor mask = scratch(conv_mask_shape(together ? pooled : shape), DType::u8, x, Layout::row_major);
    if (together) return pool_by(*together, g, x, w, {}, {y, positions, mask});
    const Tensor whole = scratch(shape, x.dtype(), x);
    conv_forward(g, impl, x, w, {.relu = true, .mask = mask}, whole);
    kernels::max_pool2d_forward(whole, {.kernel = {2, 2}, .stride = {2, 2}}, y, positions);
  });
}

void moments_by(Family family, const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias,
                const Tensor& y, const Tensor& moments) {
  if (family == Family::stationary) return stationary::forward_moments(g, x, w, bias, y, moments);
  implicit_gemm::forward_moments_by({}, g, x, w, bias, y, moments);
}

std::int64_t moment_parts_of(Family family, const ConvGeometry& g) {
  return family == Family::stationary ? stationary::moment_parts(g) : implicit_gemm::moment_parts({}, g);
}

Together choose_moments(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w) {
  if (g.n * g.p * g.q < 2) return {};  // no variance: batch norm says so
  return choose_together(TunedPass::forward_moments, g, impl, x, w, [&](const Together& together) {
    const MemoryTagScope scope(MemoryTag::workspace);
    const Shape shape{g.n, g.k, g.p, g.q};
    const Tensor y = scratch(shape, x.dtype(), x), normed = scratch(shape, x.dtype(), x);
    const Tensor mean = scratch({g.k}, DType::f32, x, Layout::row_major), inverse_std = empty_like(mean);
    if (!together) {
      conv_forward(g, impl, x, w, {}, y);
      return kernels::batch_norm_forward_train(y, {}, {}, {}, {}, {}, normed, mean, inverse_std);
    }
    const Tensor moments = scratch({3, moment_parts_of(*together, g), g.k}, DType::f64, x, Layout::row_major);
    moments_by(*together, g, x, w, {}, y, moments);
    kernels::batch_norm_forward_from_moments(y, moments, {}, {}, {}, {}, {}, normed, mean, inverse_std);
  });
}

}  // namespace

bool fuses_pool(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w) {
  return choose_pool(g, impl, x, w).has_value();
}

void conv_pool_forward(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Tensor& bias,
                       const PooledOutput& to) {
  pool_by(choose_pool(g, impl, x, w).value(), g, x, w, aligned_bias(bias), to);
}

std::int64_t conv_moment_parts(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w) {
  const Together together = choose_moments(g, impl, x, w);
  return together ? moment_parts_of(*together, g) : 0;
}

void conv_forward_moments(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Tensor& bias,
                          const Tensor& y, const Tensor& moments) {
  moments_by(choose_moments(g, impl, x, w).value(), g, x, w, aligned_bias(bias), y, moments);
}

}  // namespace tandem::kernels::cuda
