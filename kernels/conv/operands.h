// What kernels of convolutions take and leave, and what they share: the ends of a pass, the conditions on its tensors,
// gradients with masks.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/conv/geometry.h"

#include <cstdint>
#include <string_view>

namespace tandem::kernels {

template <typename T>
const T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}
template <typename T>
T* data_or_null(const Out& out) {
  return out.defined() ? out.data<T>() : nullptr;
}

}  // namespace tandem::kernels

namespace tandem::kernels::cuda {

/// What happens to an output before it is stored; bias and mask may be undefined, a mask needs `relu`.
struct Epilogue {
  Tensor bias = {};
  bool relu = false;
  Out mask = {};
};

/// Where the 2x2 maxima go; positions and mask may be undefined.
struct PooledOutput {
  Out y = {};
  Out positions = {};
  Out mask = {};
};

/// Where 2x2 maxima without ReLU go, and their moments; positions and moments may be undefined.
struct PooledMomentsOutput {
  Out y = {};
  Out positions = {};
  Out moments = {};
};

/// Bytes that the addresses of a pass's tensors must be multiples of, for copies of 16 bytes and for libraries.
inline constexpr std::uintptr_t kOperandAlignment = 16;

/// Tensors that are undefined are aligned.
inline bool is_aligned(const Tensor& tensor) {
  return !tensor.defined() || reinterpret_cast<std::uintptr_t>(tensor.raw_data()) % kOperandAlignment == 0;
}

/// What the choice of a pass's kernels knows of its tensors.
struct Operands {
  DType dtype;
  Device device;
  bool aligned = true;  // all that are defined
};

/// Of a pass over these tensors, Tensor or Out, of which the first is defined.
template <typename First, typename... More>
Operands operands_of(DType dtype, const First& first, const More&... more) {
  return {dtype, first.device(), is_aligned(first) && (is_aligned(more) && ...)};
}

/// The reason why a family of kernels does not run a pass, or "".
using ConvObstacle = std::string_view(PassKind pass, const ConvGeometry& g, const Operands& operands);

/// Throws Error with the reason, where there is one; `op` is named.
void require_no_obstacle(std::string_view op, ConvObstacle* obstacle, PassKind pass, const ConvGeometry& g,
                         const Operands& operands);

/// What all tensor-core kernels ask: one group, tensors with elements and 32-bit offsets that begin at multiples of 16
/// bytes, and what `of_geometry` says of channels and strides. The reason why not, or "".
std::string_view tensor_core_obstacle(std::string_view (*of_geometry)(const ConvGeometry&), const ConvGeometry& g,
                                      const Operands& operands);

// The signatures of passes; each family's header declares its own by them. A mask that is defined says where grad_y
// counts. All are enqueued on the current stream, and throw Error where the family has an obstacle.

/// y = x * w, and its end.
using ForwardPass = void(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue,
                         const Out& y);
/// Ends in bias, ReLU and 2x2 maxima; the geometry is that of the convolution.
using ForwardPoolPass = void(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias,
                             const PooledOutput& to);
/// y = x * w + bias, and of parts of y's pixels and each channel the moments, [3, parts, K] of f64: count, mean,
/// squared deviations.
using ForwardMomentsPass = void(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias,
                                const Out& y, const Out& moments);
using MomentParts = std::int64_t(const ConvGeometry& g);
/// Ends in bias and 2x2 maxima, and leaves the moments of these. Outputs of no whole window are not computed.
using ForwardPoolMomentsPass = void(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias,
                                    const PooledMomentsOutput& to);
using BackwardInputPass = void(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                               const Out& grad_x);
/// As conv_bias_relu_backward() with a layer below.
using BackwardInputBelowPass = void(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                                    const LayerBelow& below, const Out& grad_x);
using BackwardWeightPass = void(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                                const Out& grad_w);
/// The bias gradient as well, unless that is undefined, in the same reading of grad_y.
using BackwardWeightAndBiasPass = void(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                                       const Out& grad_w, const Out& grad_bias);

/// mask bit = (y > 0)
void sign_mask(const Tensor& y, const Out& mask);
/// out = grad_y where the bit is set, else 0; both dense and in the same order. They may be one tensor.
void apply_mask(const Tensor& grad_y, const Tensor& mask, const Out& out);
void conv_backward_bias(const Tensor& grad_y, const Tensor& mask, const Out& grad_bias);

/// grad_y where the bits of `mask` are set, else 0, in new memory; grad_y itself without a mask.
Tensor masked_gradient(const Tensor& grad_y, const Tensor& mask);

/// What a layer below wants, done to a gradient that is there.
void finish_for_layer_below(const Out& grad_x, const LayerBelow& below);

}  // namespace tandem::kernels::cuda
