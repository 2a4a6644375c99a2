// The implementations of convolution that conv.cpp chooses from. Shapes have been checked; all images are dense NHWC,
// weights dense KRSC.
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/conv/geometry.h"
#include "kernels/conv/implicit_gemm/tile_shape.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace tandem::kernels {

enum class TunedPass : std::uint8_t;  // tuning/tuner.h, as is the next one
struct TunedWork;

template <typename T>
T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

namespace reference {
/// Plain loops for every floating dtype and geometry; sums in double, rounded once. The signatures are conv.h's.
void conv2d_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry& g, bool relu,
                    const Tensor& y);
void conv2d_backward_input(const Tensor& grad_y, const Tensor& w, const ConvGeometry& g, const Tensor& grad_x);
void conv2d_backward_weight(const Tensor& x, const Tensor& grad_y, const ConvGeometry& g, const Tensor& grad_w);
void conv2d_backward_bias(const Tensor& grad_y, const Tensor& grad_bias);
/// mask bit = (y > 0)
void sign_mask(const Tensor& y, const Tensor& mask);
/// out = grad_y where the bit is set, else 0
void apply_mask(const Tensor& grad_y, const Tensor& mask, const Tensor& out);
}  // namespace reference

namespace cpu {
// The fast passes, for f32, f16 and bf16, computed in float. Images of half types are widened as they are read and
// rounded as they are written; weights and their gradients go through copies in float.

/// False where only the reference serves: other dtypes, tensors without elements, ConvImpl::reference. Throws Error
/// where `impl` cannot run.
bool conv_supports(const ConvGeometry& g, DType dtype, ConvImpl impl);
/// y = x * w + bias, then max(y, 0) if `relu`; bias and mask may be undefined, a mask needs `relu`.
void conv_forward(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Tensor& bias, bool relu,
                  const Tensor& mask, const Tensor& y);
/// The gradients that are defined; x, w and mask may be undefined where they are not needed.
void conv_backward(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Tensor& mask,
                   const Tensor& grad_y, const Tensor& grad_x, const Tensor& grad_w, const Tensor& grad_bias);
/// How many products of two numbers a pass that does `work` beside takes where `impl` runs it, by rule or as the tuner
/// has chosen: those of the definition of convolution, or the fewer ones of Winograd's algorithm, whose transforms are
/// not counted.
std::int64_t conv_products(const ConvGeometry& g, DType dtype, ConvImpl impl, TunedPass pass, const TunedWork& work);
void conv_backward_bias(const Tensor& grad_y, const Tensor& grad_bias);
/// Zeros the elements of a dense gradient whose bit is not set.
void apply_mask(const Tensor& gradient, const Tensor& mask);
}  // namespace cpu

// What cpu:: chooses from, on raw pointers. Each has the same three entries: `forward` with an epilogue,
// `backward_input`, and `backward_weight`, which also sums the bias gradient (grad_bias may be null). T is the type of
// the images: float, Half or BFloat16; weights are floats.

namespace winograd {
/// 3x3 kernels with unit stride and dilation, no groups; pays from 16 channels on.
bool supports(const ConvGeometry& g);
bool pays(const ConvGeometry& g);
/// Products of transformed values in one pass; `pass` is forward or a gradient.
std::int64_t products(const ConvGeometry& g, TunedPass pass);
template <typename T>
void forward(const ConvGeometry& g, const T* x, const float* w, const ConvEpilogue& epilogue, T* y);
template <typename T>
void backward_input(const ConvGeometry& g, MaskedGradient<T> grad_y, const float* w, T* grad_x);
template <typename T>
void backward_weight(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y, float* grad_w, float* grad_bias);
}  // namespace winograd

namespace direct {
/// Every geometry: rows of input patches times packed weights.
template <typename T>
void forward(const ConvGeometry& g, const T* x, const float* w, const ConvEpilogue& epilogue, T* y);
template <typename T>
void backward_input(const ConvGeometry& g, MaskedGradient<T> grad_y, const float* w, T* grad_x);
template <typename T>
void backward_weight(const ConvGeometry& g, const T* x, MaskedGradient<T> grad_y, float* grad_w, float* grad_bias);
}  // namespace direct

namespace onednn {
/// Present in builds with oneDNN only (TANDEM_HAS_ONEDNN). Images of floats.
bool supports(const ConvGeometry& g);
void forward(const ConvGeometry& g, const float* x, const float* w, const ConvEpilogue& epilogue, float* y);
void backward_input(const ConvGeometry& g, MaskedGradient<float> grad_y, const float* w, float* grad_x);
void backward_weight(const ConvGeometry& g, const float* x, MaskedGradient<float> grad_y, float* grad_w,
                     float* grad_bias);
}  // namespace onednn

namespace cuda {

// Kernels for a GPU, in builds with one: f32, f16 and bf16, accumulated in float in an order that depends on the sizes
// alone. A mask that is defined says where grad_y counts. They are enqueued on the current stream.

/// What happens to an output before it is stored; bias and mask may be undefined, a mask needs `relu`.
struct Epilogue {
  Tensor bias = {};
  bool relu = false;
  Tensor mask = {};
};

/// Where the 2x2 maxima go; positions and mask may be undefined.
struct PooledOutput {
  Tensor y = {};
  Tensor positions = {};
  Tensor mask = {};
};

/// Our families of kernels, slowest first.
enum class Family : std::uint8_t { naive, tile, few_channels, implicit_gemm, stationary, warpgroup };

struct FamilyChoice {
  Family family;
  std::string_view reason;  // why it is not a faster one; "" for the fastest
};

/// The fastest family for all passes over these tensors, which may be undefined; `impl` reference asks for the naive
/// one, `impl` warpgroup for that one where it runs. Where it is implicit_gemm, single passes may go to `stationary`.
FamilyChoice choose_family(const ConvGeometry& g, ConvImpl impl, DType dtype, std::initializer_list<Tensor> tensors);

/// The passes by cuDNN or the family of kernels that `impl` and the geometry ask for.
void conv_forward(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Epilogue& epilogue,
                  const Tensor& y);
/// The gradients that are defined; x and w may be undefined where no gradient asked for needs them.
void conv_backward(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Tensor& mask,
                   const Tensor& grad_y, const Tensor& grad_x, const Tensor& grad_w, const Tensor& grad_bias,
                   const LayerBelow& below);
/// Whether grad_x comes from kernels that do the work of a LayerBelow as they write it.
bool fuses_layer_below(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w);
/// conv_bias_relu_pool_forward; throws where fuses_pool() says no.
void conv_pool_forward(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Tensor& bias,
                       const PooledOutput& to);
/// Whether there are kernels that write only the maxima, and nothing faster was asked for or measured.
bool fuses_pool(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w);
/// conv2d_forward_with_moments, and conv_moment_parts.
void conv_forward_moments(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Tensor& bias,
                          const Tensor& y, const Tensor& moments);
std::int64_t conv_moment_parts(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w);
void conv_backward_bias(const Tensor& grad_y, const Tensor& mask, const Tensor& grad_bias);
/// mask bit = (y > 0)
void sign_mask(const Tensor& y, const Tensor& mask);
/// out = grad_y where the bit is set, else 0; both dense and in the same order
void apply_mask(const Tensor& grad_y, const Tensor& mask, const Tensor& out);

namespace naive {
/// Every geometry: one thread per element of the result.
void forward(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Tensor& y);
void backward_input(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                    const Tensor& grad_x);
void backward_weight(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                     const Tensor& grad_w);
}  // namespace naive

namespace tile {
/// One group, tensors with elements: tiles of a matrix product in shared memory.
bool supports(const ConvGeometry& g);
void forward(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Tensor& y);
void backward_input(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                    const Tensor& grad_x);
void backward_weight(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                     const Tensor& grad_w);
}  // namespace tile

namespace few_channels {
/// Tensor cores for the first layers of networks, forward and gradient of the weights: f16 and bf16, one group, at most
/// 256 taps x channels, outputs in multiples of 8, tensors that begin at multiples of 16 bytes. The reason why these do
/// not run, or "".
std::string_view obstacle(const ConvGeometry& g, DType dtype, std::initializer_list<Tensor> tensors);
/// Throws Error with that reason; so do the passes.
void require_no_obstacle(std::string_view op, const ConvGeometry& g, DType dtype,
                         std::initializer_list<Tensor> tensors);
void forward(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Tensor& y);
void backward_weight(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                     const Tensor& grad_w);
/// The bias gradient as well, unless that is undefined, in the same reading of grad_y.
void backward_weight_and_bias(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                              const Tensor& grad_w, const Tensor& grad_bias);
}  // namespace few_channels

namespace implicit_gemm {
/// Tensor cores: f16 and bf16, one group, channels in multiples of 8, tensors that begin at multiples of 16 bytes. The
/// reason why these do not run, or "".
std::string_view obstacle(const ConvGeometry& g, DType dtype, std::initializer_list<Tensor> tensors);
/// Throws Error with that reason.
void require_no_obstacle(std::string_view op, const ConvGeometry& g, DType dtype,
                         std::initializer_list<Tensor> tensors);
/// The tile is chosen by the geometry. Throws where there is an obstacle; so do the others.
void forward(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Tensor& y);
void forward_by(Tile tile, const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue,
                const Tensor& y);
/// Ends in bias, ReLU and 2x2 maxima; the geometry is that of the convolution.
void forward_pool_by(std::optional<Tile> tile, const ConvGeometry& g, const Tensor& x, const Tensor& w,
                     const Tensor& bias, const PooledOutput& to);

/// Without ReLU; of each tile of y's pixels and each channel the moments, [3, moment_parts, K] of f64: count, mean,
/// squared deviations.
void forward_moments_by(std::optional<Tile> tile, const ConvGeometry& g, const Tensor& x, const Tensor& w,
                        const Tensor& bias, const Tensor& y, const Tensor& moments);
std::int64_t moment_parts(std::optional<Tile> tile, const ConvGeometry& g);

/// A gradient that comes with a mask is copied first. What the caller chooses is the tile of every phase.
void backward_input(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                    const Tensor& grad_x);
void backward_input_by(std::optional<Tile> tile, const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask,
                       const Tensor& w, const LayerBelow& below, const Tensor& grad_x);

void backward_weight(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                     const Tensor& grad_w);
void backward_weight_by(const WeightPlan& plan, const ConvGeometry& g, const Tensor& x, const Tensor& grad_y,
                        const Tensor& mask, const Tensor& grad_w);
}  // namespace implicit_gemm

/// The passes that can keep weights in shared memory.
enum class StationaryPass : std::uint8_t { forward, forward_pool, backward_input, backward_weight };

namespace stationary {
/// Tensor cores whose weights stay in shared memory, while blocks fetch the halo of one tile of pixels after the other:
/// f16 and bf16, one group, strides of 1, channels in multiples of 8 and at most 128, weights and two halos that fit
/// into shared memory, tensors that begin at multiples of 16 bytes; for the gradient of weights, whose sums stay in
/// registers, at most 64 channels and 9 taps. The reason why these do not run, or "".
std::string_view obstacle(StationaryPass pass, const ConvGeometry& g, DType dtype,
                          std::initializer_list<Tensor> tensors);
/// Throws Error with that reason; so do the passes.
void require_no_obstacle(std::string_view op, StationaryPass pass, const ConvGeometry& g, DType dtype,
                         std::initializer_list<Tensor> tensors);
/// True where this is planned to be faster than implicit_gemm: every halo is read once, for several taps, and tiles are
/// many and mostly full.
bool pays(StationaryPass pass, const ConvGeometry& g);
void forward(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Tensor& y);
/// Ends in bias, ReLU and 2x2 maxima; the geometry is that of the convolution.
void forward_pool(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias, const PooledOutput& to);
/// As implicit_gemm::forward_moments_by.
void forward_moments(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y,
                     const Tensor& moments);
std::int64_t moment_parts(const ConvGeometry& g);
/// A gradient that comes with a mask is copied first.
void backward_input(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                    const Tensor& grad_x);
void backward_input_for(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                        const LayerBelow& below, const Tensor& grad_x);
void backward_weight(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                     const Tensor& grad_w);
}  // namespace stationary

namespace warpgroup {
/// Tensor cores that four warps use together (wgmma), with operands that the memory system fetches by itself (TMA), on
/// GPUs of compute capability 9.0: f16 and bf16, one group, strides of 1, channels in multiples of 8, tensors that
/// begin at multiples of 16 bytes. The reason why these do not run, or "". Only for ConvImpl::warpgroup.
std::string_view obstacle(const ConvGeometry& g, DType dtype, std::initializer_list<Tensor> tensors);
/// Throws Error with that reason; so do the passes.
void require_no_obstacle(std::string_view op, const ConvGeometry& g, DType dtype,
                         std::initializer_list<Tensor> tensors);
void forward(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Tensor& y);
/// A gradient that comes with a mask is copied first.
void backward_input(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                    const Tensor& grad_x);
void backward_input_for(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                        const LayerBelow& below, const Tensor& grad_x);
void backward_weight(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                     const Tensor& grad_w);
}  // namespace warpgroup

}  // namespace cuda
}  // namespace tandem::kernels
