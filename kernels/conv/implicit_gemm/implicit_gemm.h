// A product of patches and weights on tensor cores: f16 and bf16, and f32 where float32_products() allows it, one
// group, channels in multiples of 8, tensors that begin at multiples of 16 bytes. A gradient that comes with a mask is
// copied first.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/tile_shape.h"
#include "tandem/kernels/conv/operands.h"

#include <optional>

namespace tandem::kernels::cuda::implicit_gemm {

ConvObstacle obstacle;

// The tiles are chosen by the geometry.
ForwardPass forward;
ForwardPoolPass forward_pool;
ForwardMomentsPass forward_moments;
MomentParts moment_parts;
ForwardPoolMomentsPass forward_pool_moments;
MomentParts pool_moment_parts;
BackwardInputPass backward_input;
BackwardInputBelowPass backward_input_below;
BackwardWeightPass backward_weight;

// The same by a tile that the caller chooses, of every phase in the gradient of the input.
void forward_by(Tile tile, const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue,
                const Out& y);
void forward_pool_by(Tile tile, const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias,
                     const PooledOutput& to);
void forward_moments_by(Tile tile, const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias,
                        const Out& y, const Out& moments);
std::int64_t moment_parts_by(Tile tile, const ConvGeometry& g);
void forward_pool_moments_by(Tile tile, const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias,
                             const PooledMomentsOutput& to);
std::int64_t pool_moment_parts_by(Tile tile, const ConvGeometry& g);
void backward_input_by(std::optional<Tile> tile, const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask,
                       const Tensor& w, const LayerBelow& below, const Out& grad_x);
void backward_weight_by(const WeightPlan& plan, const ConvGeometry& g, const Tensor& x, const Tensor& grad_y,
                        const Tensor& mask, const Out& grad_w);

}  // namespace tandem::kernels::cuda::implicit_gemm
