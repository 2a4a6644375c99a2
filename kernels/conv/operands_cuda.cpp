// What families of kernels share: conditions on geometries, and gradients with masks.
#include "tandem/kernels/conv/operands.h"

#include "tandem/core/memory.h"
#include "tandem/kernels/gemm/column_sum.h"

#include <limits>

namespace tandem::kernels::cuda {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<int>::max() / 2;

/// Offsets, also those of taps outside of an image, are 32-bit numbers.
bool fits_indices(const ConvGeometry& g) {
  const auto reach = [](std::int64_t size, std::int64_t pad, std::int64_t taps, std::int64_t dilation) {
    return size + 2 * pad + taps * dilation;
  };
  const std::int64_t sizes[] = {g.n,        g.c,        g.k,     g.r,     g.s,          g.h,         g.w,
                                g.stride_h, g.stride_w, g.pad_h, g.pad_w, g.dilation_h, g.dilation_w};
  for (const std::int64_t size : sizes)
    if (size > kMost) return false;
  const double image = static_cast<double>(reach(g.h, g.pad_h, g.r, g.dilation_h)) *
                       static_cast<double>(reach(g.w, g.pad_w, g.s, g.dilation_w));
  const double gradient =
      static_cast<double>(reach(g.p, 0, g.r, g.dilation_h)) * static_cast<double>(reach(g.q, 0, g.s, g.dilation_w));
  const double most = static_cast<double>(kMost), images = static_cast<double>(g.n);
  return images * image * static_cast<double>(g.c) <= most && images * gradient * static_cast<double>(g.k) <= most &&
         static_cast<double>(g.k) * static_cast<double>(g.r * g.s) * static_cast<double>(g.c) <= most;
}

}  // namespace

std::string_view tensor_core_obstacle(std::string_view (*of_geometry)(const ConvGeometry&), const ConvGeometry& g,
                                      const Operands& operands) {
  if (g.groups != 1) return "there is more than one group";
  if (const std::string_view reason = of_geometry(g); !reason.empty()) return reason;
  if (g.input_numel() == 0 || g.output_numel() == 0) return "a tensor is empty";
  if (!fits_indices(g)) return "the tensors, with padding, have more than 2^30 elements (32-bit offsets)";
  return operands.aligned ? "" : "a tensor begins at no multiple of 16 bytes";
}

void require_no_obstacle(std::string_view op, ConvObstacle* obstacle, PassKind pass, const ConvGeometry& g,
                         const Operands& operands) {
  const std::string_view reason = obstacle(pass, g, operands);
  require(reason.empty(),
          "{}: the tensor-core kernels do not run {} of x [{}, {}, {}, {}], w [{}, {}, {}, {}]: {}; choose impl auto",
          op, name_of(operands.dtype), g.n, g.c, g.h, g.w, g.k, g.group_c(), g.r, g.s, reason);
}

Tensor masked_gradient(const Tensor& grad_y, const Tensor& mask) {
  if (!mask.defined()) return grad_y;
  const MemoryTagScope scope(MemoryTag::workspace);
  const Tensor masked = empty_like(grad_y);
  apply_mask(grad_y, mask, Out(masked));
  return masked;
}

void finish_for_layer_below(const Out& grad_x, const LayerBelow& below) {
  if (below.mask.defined()) apply_mask(grad_x, below.mask, grad_x);
  if (below.grad_bias.defined()) conv_backward_bias(grad_x, {}, below.grad_bias);
}

void conv_backward_bias(const Tensor& grad_y, const Tensor& mask, const Out& grad_bias) {
  column_sum(grad_y.size(0) * grad_y.size(2) * grad_y.size(3), grad_y.size(1), grad_y, mask, grad_bias);
}

}  // namespace tandem::kernels::cuda
