// What several networks are built from.
#pragma once

#include "layers/layers.h"

namespace tandem::layers {

/// Options of a 3x3 convolution that keeps height and width.
inline kernels::Conv2dOptions same_size(kernels::ConvImpl impl) { return {.padding = {1, 1}, .impl = impl}; }

constexpr std::array<std::int64_t, 2> kThreeByThree{3, 3};

/// Appends 3x3 convolution, batch norm, ReLU: three numbers of the Sequential.
inline void add_conv_norm_relu(Sequential& to, std::int64_t in_channels, std::int64_t out_channels,
                               kernels::ConvImpl impl, Initializer& initializer, Bias bias = Bias::absent) {
  to.add<Conv2d>(in_channels, out_channels, kThreeByThree, same_size(impl), initializer, bias);
  to.add<BatchNorm2d>(out_channels, BatchNorm2dOptions{.relu = true});
}

}  // namespace tandem::layers
