// Convolution on a GPU: which family of kernels runs a geometry.
#include "kernels/conv/implementations.h"
#include "kernels/gemm/column_sum.h"

namespace tandem::kernels::cuda {
namespace {

/// One family's three passes.
struct Passes {
  decltype(&naive::forward) forward;
  decltype(&naive::backward_input) backward_input;
  decltype(&naive::backward_weight) backward_weight;
};
constexpr Passes kNaive{naive::forward, naive::backward_input, naive::backward_weight};
constexpr Passes kTile{tile::forward, tile::backward_input, tile::backward_weight};

const Passes& select(const ConvGeometry& g, ConvImpl impl) {
  require(impl != ConvImpl::onednn, "conv2d: oneDNN runs on the CPU, the tensors are on a GPU; use --conv-impl auto");
  return impl != ConvImpl::reference && tile::supports(g) ? kTile : kNaive;
}

}  // namespace

void conv_forward(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Epilogue& epilogue,
                  const Tensor& y) {
  select(g, impl).forward(g, x, w, epilogue, y);
}

void conv_backward_input(const ConvGeometry& g, ConvImpl impl, const Tensor& grad_y, const Tensor& mask,
                         const Tensor& w, const Tensor& grad_x) {
  select(g, impl).backward_input(g, grad_y, mask, w, grad_x);
}

void conv_backward_weight(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& grad_y,
                          const Tensor& mask, const Tensor& grad_w) {
  select(g, impl).backward_weight(g, x, grad_y, mask, grad_w);
}

void conv_backward_bias(const Tensor& grad_y, const Tensor& mask, const Tensor& grad_bias) {
  column_sum(grad_y.size(0) * grad_y.size(2) * grad_y.size(3), grad_y.size(1), grad_y, mask, grad_bias);
}

}  // namespace tandem::kernels::cuda
