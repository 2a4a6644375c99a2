// The implementations of convolution that conv.cpp calls. Shapes have been checked; all images are dense NHWC, weights
// dense KRSC. What runs passes on the CPU and on a GPU chooses from the families (families.h).
#pragma once

#include "tandem/kernels/conv/operands.h"
#include "tandem/kernels/conv/plan.h"

#include <cstdint>
#include <string_view>

namespace tandem::kernels {

struct TunedWork;  // tuning/tuner.h

namespace reference {
/// Plain loops for every floating dtype and geometry; sums in double, rounded once. The signatures are conv.h's.
void conv2d_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry& g, bool relu,
                    const Out& y);
void conv2d_backward_input(const Tensor& grad_y, const Tensor& w, const ConvGeometry& g, const Out& grad_x);
void conv2d_backward_weight(const Tensor& x, const Tensor& grad_y, const ConvGeometry& g, const Out& grad_w);
void conv2d_backward_bias(const Tensor& grad_y, const Out& grad_bias);
/// mask bit = (y > 0)
void sign_mask(const Tensor& y, const Out& mask);
/// out = grad_y where the bit is set, else 0; they may be one tensor
void apply_mask(const Tensor& grad_y, const Tensor& mask, const Out& out);
}  // namespace reference

namespace cpu {
// The fast passes, for f32, f16 and bf16, computed in float. Images of half types are widened as they are read and
// rounded as they are written; weights and their gradients go through copies in float.

/// Who runs all passes of a geometry, by rule: a family's name, or kPlainLoops where only these serve: other dtypes,
/// tensors without elements, ConvImpl::reference. Throws Error where `impl` cannot run.
std::string_view choose_conv(const ConvGeometry& g, DType dtype, ConvImpl impl);
/// y = x * w + bias, then max(y, 0) if `relu`; bias and mask may be undefined, a mask needs `relu`. By `rule`, the
/// name of a family, or as the tuner has measured.
void conv_forward(const ConvPlan& plan, std::string_view rule, const Tensor& x, const Tensor& w, const Tensor& bias,
                  bool relu, const Out& mask, const Out& y);
/// The gradients that are defined; x, w and mask may be undefined where they are not needed.
void conv_backward(const ConvPlan& plan, std::string_view rule, const ConvBackwardInputs& from,
                   const ConvGradients& to);
/// How many products of two numbers a pass that does `work` beside takes where `impl` runs it, by rule or as the tuner
/// has chosen: those of the definition of convolution, or the fewer ones of Winograd's algorithm, whose transforms are
/// not counted.
std::int64_t conv_products(const ConvGeometry& g, DType dtype, ConvImpl impl, PassKind pass, const TunedWork& work);
void conv_backward_bias(const Tensor& grad_y, const Out& grad_bias);
/// Zeros the elements of a dense gradient whose bit is not set.
void apply_mask(const Out& gradient, const Tensor& mask);
}  // namespace cpu

namespace cuda {
// In builds with a GPU: f32, f16 and bf16, accumulated in float in an order that depends on the sizes alone. By the
// plan's runners, or whom `impl`, the geometry and the tensors ask for.

/// Fills in the runners that are requested, and what they fuse, for tensors like x and w.
void plan_conv(const ConvRequest& request, const Tensor& x, const Tensor& w, ConvPlan& plan);
bool fuses_layer_below(const ConvPlan& plan, const Tensor& x, const Tensor& w);
void conv_forward(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Out& y);
/// The gradients that are defined; x and w may be undefined where no gradient asked for needs them.
void conv_backward(const ConvPlan& plan, const ConvBackwardInputs& from, const ConvGradients& to,
                   const LayerBelow& below);
/// conv_bias_relu_pool_forward, where plan.runs_pool_with_relu().
void conv_pool_forward(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias,
                       const PooledOutput& to);
/// conv2d_forward_with_moments, where plan.runs_with_moments().
void conv_forward_moments(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias, const Out& y,
                          const Out& moments);
/// conv2d_pool_forward, where plan.runs_pool_with_moments().
void conv_pool_forward_moments(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias,
                               const PooledMomentsOutput& to);
}  // namespace cuda

}  // namespace tandem::kernels
