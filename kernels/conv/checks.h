// Checks of the arguments of convolutions, and plans without runners. Internal to conv.cpp and plan.cpp.
#pragma once

#include "tandem/core/describe.h"
#include "tandem/kernels/conv/plan.h"

#include <string_view>

namespace tandem::kernels::conv_checks {

inline Shape input_shape(const ConvGeometry& g) { return {g.n, g.c, g.h, g.w}; }
inline Shape output_shape(const ConvGeometry& g) { return {g.n, g.k, g.p, g.q}; }
inline Shape weight_shape(const ConvGeometry& g) { return {g.k, g.group_c(), g.r, g.s}; }

/// Throws Error unless `tensor` has this shape and dtype and is dense in channels_last order.
void check(std::string_view op, std::string_view name, const Tensor& tensor, const Shape& shape, DType dtype,
           bool optional = false);

/// The geometry of weights like `w`, or their gradient, and images of shape `x`. Throws Error where they make no
/// convolution, or `options.impl` cannot run on their device.
ConvPlan plan_without_runners(std::string_view op, const Shape& x, const Tensor& w, const Conv2dOptions& options);

}  // namespace tandem::kernels::conv_checks
