// The implementations of convolution that conv.cpp chooses from. Shapes have been checked; all images are dense NHWC,
// weights dense KRSC.
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/conv/geometry.h"
#include "kernels/conv/implicit_gemm/tile_shape.h"

#include <initializer_list>
#include <optional>
#include <string_view>

namespace tandem::kernels {

/// Our families of kernels, slowest first.
enum class Family : std::uint8_t { naive, tile, implicit_gemm };

struct FamilyChoice {
  Family family;
  std::string_view reason;  // why it is not a faster one; "" for the fastest
};

/// The fastest family for a pass over these tensors, which may be undefined; `impl` reference asks for the naive one.
FamilyChoice choose_family(const ConvGeometry& g, ConvImpl impl, DType dtype, std::initializer_list<Tensor> tensors);

/// The passes by cuDNN or the family of kernels that `impl` and the geometry ask for.
void conv_forward(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Epilogue& epilogue,
                  const Tensor& y);
/// The gradients that are defined; x and w may be undefined where no gradient asked for needs them.
void conv_backward(const ConvGeometry& g, ConvImpl impl, const Tensor& x, const Tensor& w, const Tensor& mask,
                   const Tensor& grad_y, const Tensor& grad_x, const Tensor& grad_w, const Tensor& grad_bias);
/// grad_x as the layer below wants it.
void conv_backward_input_below(const ConvGeometry& g, ConvImpl impl, const Tensor& grad_y, const Tensor& w,
                               const LayerBelow& below, const Tensor& grad_x);
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

}  // namespace cuda
}  // namespace tandem::kernels
