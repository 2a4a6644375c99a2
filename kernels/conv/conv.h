// Two-dimensional convolution (cross-correlation) and its gradients, plain and fused with bias and ReLU.
#pragma once

#include "tandem/core/height_width.h"
#include "tandem/core/out.h"
#include "tandem/core/tensor.h"

#include <cstdint>
#include <string_view>

namespace tandem::kernels {

struct ConvPlan;

/// Which implementation runs; `automatic` decides by geometry.
enum class ConvImpl : std::uint8_t {
  automatic,
  reference,  // plain loops; on a GPU one thread per element
  fused,      // this project's own kernels, the fastest that support the geometry
  onednn,     // the library, on the CPU only
  cudnn,      // the library, on a GPU only
  warpgroup,  // as `fused`, but with the kernels for Hopper (sm_90a) wherever they run
  direct,     // our own without Winograd's algorithm, on the CPU only: plain sums in f32, slower and more exact
  winograd,   // our own with Winograd's algorithm wherever it is possible, on the CPU only
};

/// "auto", "fused" and so on: what parse_conv_impl() takes.
std::string_view name_of(ConvImpl impl);

/// One of conv_impl_names() (kernels/implementations.h); anything else throws Error with the choices.
ConvImpl parse_conv_impl(std::string_view text);

/// PyTorch's names and defaults.
struct Conv2dOptions {
  HeightWidth stride = 1;               ///< from one output to the next, in pixels
  HeightWidth padding = 0;              ///< zeros on each side, in pixels
  HeightWidth dilation = 1;             ///< distance between the kernel's elements
  std::int64_t groups = 1;              ///< into which the channels are divided
  ConvImpl impl = ConvImpl::automatic;  ///< which code computes it
};

// x [N,C,H,W], w [K,C/groups,R,S], y [N,K,P,Q] with P = (H + 2 pad - dilation (R-1) - 1) / stride + 1; bias [K].
// One floating dtype and device; images and weights dense and channels_last. f32, f16 and bf16 are accumulated in float
// and rounded once; f64 runs the reference on the CPU and throws on a GPU. Results of our own implementations do not
// depend on the number of threads. Wrong shapes, dtypes or layouts throw Error.

/// The shape of y. Throws Error where the shapes or options make no convolution.
Shape conv2d_output_shape(const Shape& x, const Shape& w, const Conv2dOptions& options);

// Each pass takes a plan (plan.h), which a layer makes once for all its passes; those with options make one by
// themselves. What is written is an Out; none of it may share memory with what is read.

/// y = x * w + bias; bias may be undefined.
void conv2d_forward(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias, const Out& y);
void conv2d_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options, const Out& y);

/// y = x * w + bias, and the moments that batch norm wants of y: [3, parts, K] of f64 holds count, mean and sum of
/// squared deviations of each channel over parts of the pixels, with parts = plan.moment_parts. Throws Error unless
/// plan.runs_with_moments(): there are no such kernels.
void conv2d_forward_with_moments(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias,
                                 const Out& y, const Out& moments);

/// The layer whose output x is, where that ends in bias and ReLU: its mask, and room for its bias's gradient [C]. Both
/// may be undefined.
struct LayerBelow {
  Tensor mask = {};    ///< of the layer's ReLU; undefined: it has none
  Out grad_bias = {};  ///< overwritten; undefined: it is not wanted
};

/// grad_x, overwritten. With `below` it is as that layer takes it: 0 where the bit of its mask is not set, and its
/// grad_bias = the sum of that over N, H and W.
void conv2d_backward_input(const ConvPlan& plan, const Tensor& grad_y, const Tensor& w, const Out& grad_x,
                           const LayerBelow& below = {});
void conv2d_backward_input(const Tensor& grad_y, const Tensor& w, const Conv2dOptions& options, const Out& grad_x,
                           const LayerBelow& below = {});

/// grad_w, overwritten.
void conv2d_backward_weight(const ConvPlan& plan, const Tensor& x, const Tensor& grad_y, const Out& grad_w);
void conv2d_backward_weight(const Tensor& x, const Tensor& grad_y, const Conv2dOptions& options, const Out& grad_w);

/// grad_bias[k] = sum of grad_y over N, P and Q, where the bit of a sign mask is set if there is one.
void conv2d_backward_bias(const Tensor& grad_y, const Out& grad_bias, const Tensor& mask = {});

/// Shape of the sign mask of y: u8, one bit per element of y in memory (N,P,Q,K) order, lowest bit first.
Shape conv_mask_shape(const Shape& y);

/// y = max(x * w + bias, 0), and mask bit = (y > 0). Bias and mask may be undefined.
/// Example:
///     const TensorOptions images{.layout = Layout::channels_last};
///     const Tensor x = Tensor::zeros({8, 64, 32, 32}, images), w = Tensor::zeros({64, 64, 3, 3}, images);
///     const Conv2dOptions options{.padding = 1, .impl = ConvImpl::direct};
///     const Tensor y = Tensor::empty(conv2d_output_shape(x.shape(), w.shape(), options), images);
///     conv_bias_relu_forward(x, w, Tensor::zeros({64}), options, Out(y), {});  // what is timed
void conv_bias_relu_forward(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias, const Out& y,
                            const Out& mask);
void conv_bias_relu_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
                            const Out& y, const Out& mask);

/// Stands in the positions of conv_bias_relu_pool_forward for a maximum that is not positive.
inline constexpr std::uint8_t kNoPosition = 255;

/// y [N,K,P/2,Q/2] = the maxima of 2x2 elements, side by side, of max(x * w + bias, 0); an odd last row or column is
/// left out. positions (u8, of y's shape and layout) are those of max_pool2d_forward, or kNoPosition where y is not
/// positive, so that max_pool2d_backward goes through the ReLU as well; mask bit = (y > 0). Bias, positions and mask
/// may be undefined. Throws Error unless plan.runs_pool_with_relu().
void conv_bias_relu_pool_forward(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias,
                                 const Out& y, const Out& positions, const Out& mask);

/// y [N,K,P/2,Q/2] = the maxima of 2x2 elements, side by side, of x * w + bias; an odd last row or column is left out,
/// and not computed. positions (u8, of y's shape and layout) are those of max_pool2d_forward, and so are ties and NaN.
/// moments of y as conv2d_forward_with_moments() leaves them, for batch_norm_forward_from_moments(). f16, bf16, and f32
/// where float32_products() allows it. Bias, positions and moments may be undefined. Throws Error unless
/// plan.runs_pool_with_moments().
void conv2d_pool_forward(const ConvPlan& plan, const Tensor& x, const Tensor& w, const Tensor& bias, const Out& y,
                         const Out& positions, const Out& moments);

/// The shape of the y of both.
Shape conv_pool_output_shape(const Shape& x, const Shape& w, const Conv2dOptions& options);

/// What gradients are computed from: the operands of the forward pass, its mask, and the gradient of y, which counts
/// where the mask's bit is set.
struct ConvBackwardInputs {
  Tensor x = {}, w = {}, mask = {}, grad_y = {};  ///< conv_bias_relu_backward() needs all four
};

/// The gradients of x, w and bias, each overwritten; those that are undefined are not wanted.
struct ConvGradients {
  Out x = {}, w = {}, bias = {};  ///< overwritten; undefined: not wanted
};

/// With `below`, the gradient of x is what conv2d_backward_input() would give, and so is its grad_bias; Error where the
/// gradient of x is not wanted then.
void conv_bias_relu_backward(const ConvPlan& plan, const ConvBackwardInputs& from, const ConvGradients& to,
                             const LayerBelow& below = {});
void conv_bias_relu_backward(const Conv2dOptions& options, const ConvBackwardInputs& from, const ConvGradients& to,
                             const LayerBelow& below = {});

}  // namespace tandem::kernels
