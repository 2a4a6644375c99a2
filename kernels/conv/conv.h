// Two-dimensional convolution (cross-correlation) and its gradients, plain and fused with bias and ReLU.
#pragma once

#include "core/tensor.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace tandem::kernels {

/// Which implementation runs; `automatic` decides by geometry.
enum class ConvImpl : std::uint8_t {
  automatic,
  reference,  // plain loops; on a GPU one thread per element
  fused,      // this project's own kernels, the fastest that support the geometry
  onednn,     // the library, on the CPU only
  cudnn,      // the library, on a GPU only
  warpgroup,  // as `fused`, but with the kernels for Hopper (sm_90a) where they run; not yet measured on hardware
  direct,     // our own without Winograd's algorithm, on the CPU only: plain sums in f32, slower and more exact
  winograd,   // our own with Winograd's algorithm wherever it is possible, on the CPU only
};

std::string_view name_of(ConvImpl impl);

/// "auto", "reference", "fused", "onednn", "cudnn", "warpgroup", "direct" or "winograd"; anything else throws.
ConvImpl parse_conv_impl(std::string_view text);

struct Conv2dOptions {
  std::array<std::int64_t, 2> stride{1, 1};  // height, width
  std::array<std::int64_t, 2> padding{0, 0};
  std::array<std::int64_t, 2> dilation{1, 1};
  std::int64_t groups = 1;
  ConvImpl impl = ConvImpl::automatic;
};

// x [N,C,H,W], w [K,C/groups,R,S], y [N,K,P,Q] with P = (H + 2 pad - dilation (R-1) - 1) / stride + 1; bias [K].
// One floating dtype and device; images and weights dense and channels_last. f32, f16 and bf16 are accumulated in float
// and rounded once; f64 runs the reference on the CPU and throws on a GPU. Results of our own implementations do not
// depend on the number of threads. Wrong shapes, dtypes or layouts throw Error.

/// The shape of y; throws where the shapes or options make no convolution.
Shape conv2d_output_shape(const Shape& x, const Shape& w, const Conv2dOptions& options);

/// y = x * w + bias; bias may be undefined.
void conv2d_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
                    const Tensor& y);

/// y = x * w + bias, and the moments that batch norm wants of y: [3, parts, K] of f64 holds count, mean and sum of
/// squared deviations of each channel over parts of the pixels. For parts = conv_moment_parts(), not 0.
void conv2d_forward_with_moments(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
                                 const Tensor& y, const Tensor& moments);

/// In how many parts the kernels that write y leave moments; 0 where there are no such kernels, or faster ones without.
std::int64_t conv_moment_parts(const Tensor& x, const Tensor& w, const Conv2dOptions& options);

/// grad_x, overwritten.
void conv2d_backward_input(const Tensor& grad_y, const Tensor& w, const Conv2dOptions& options, const Tensor& grad_x);

/// grad_x as a layer below with bias and ReLU, whose output x is, takes it: 0 where the bit of that layer's mask is not
/// set, and grad_bias_below [C] = the sum of that over N, H and W. Both may be undefined.
void conv2d_backward_input_below(const Tensor& grad_y, const Tensor& w, const Conv2dOptions& options,
                                 const Tensor& mask_below, const Tensor& grad_x, const Tensor& grad_bias_below);

/// grad_w, overwritten.
void conv2d_backward_weight(const Tensor& x, const Tensor& grad_y, const Conv2dOptions& options, const Tensor& grad_w);

/// grad_bias[k] = sum of grad_y over N, P and Q, where the bit of a sign mask is set if there is one.
void conv2d_backward_bias(const Tensor& grad_y, const Tensor& grad_bias, const Tensor& mask = {});

/// Shape of the sign mask of y: u8, one bit per element of y in memory (N,P,Q,K) order, lowest bit first.
Shape conv_mask_shape(const Shape& y);

/// y = max(x * w + bias, 0), and mask bit = (y > 0). Bias and mask may be undefined.
void conv_bias_relu_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
                            const Tensor& y, const Tensor& mask);

/// Stands in the positions of conv_bias_relu_pool_forward for a maximum that is not positive.
inline constexpr std::uint8_t kNoPosition = 255;

/// y [N,K,P/2,Q/2] = the maxima of 2x2 elements, side by side, of max(x * w + bias, 0); an odd last row or column is
/// left out. positions (u8, of y's shape and layout) are those of max_pool2d_forward, or kNoPosition where y is not
/// positive, so that max_pool2d_backward goes through the ReLU as well; mask bit = (y > 0). Bias, positions and mask
/// may be undefined. Throws where conv_fuses_pool() says no.
void conv_bias_relu_pool_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
                                 const Tensor& y, const Tensor& positions, const Tensor& mask);

/// The shape of that y.
Shape conv_pool_output_shape(const Shape& x, const Shape& w, const Conv2dOptions& options);

/// Whether there are kernels that write only the maxima; elsewhere they are another operation's work.
bool conv_fuses_pool(const Tensor& x, const Tensor& w, const Conv2dOptions& options);

/// The layer whose output x is, where that ends in bias and ReLU: its mask, and room for its bias's gradient [C]. Both
/// may be undefined.
struct LayerBelow {
  Tensor mask = {};
  Tensor grad_bias = {};
};

/// The gradients that are defined, from the mask of the forward pass: grad_y counts where its bit is set, everywhere if
/// the mask is undefined. With `below`, grad_x is what conv2d_backward_input_below would give, and so is its grad_bias.
void conv_bias_relu_backward(const Tensor& x, const Tensor& w, const Tensor& mask, const Conv2dOptions& options,
                             const Tensor& grad_y, const Tensor& grad_x, const Tensor& grad_w, const Tensor& grad_bias,
                             const LayerBelow& below = {});

/// Whether the kernels that the gradient of x takes do the work of a LayerBelow as they write it; others go over it
/// once more, which is no faster than to leave that work to the layer below.
bool conv_backward_fuses_layer_below(const Tensor& x, const Tensor& w, const Conv2dOptions& options);

}  // namespace tandem::kernels
