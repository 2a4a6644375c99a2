// What several networks are built from.
// Example:
//     Initializer initializer(1);
//     Sequential network;
//     add_conv_norm_relu(network, same_size({.in = 3, .out = 64, .bias = false}), initializer);
//     const Tensor y = network(Tensor::zeros({2, 3, 32, 32}, {.layout = Layout::channels_last}));  // [2, 64, 32, 32]
#pragma once

#include "tandem/kernels/activation/activation.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/models/models.h"

namespace tandem::layers {

/// These options for a 3x3 convolution that keeps height and width.
inline Conv2dOptions same_size(Conv2dOptions options) {
  options.kernel = 3;
  options.padding = 1;
  return options;
}

/// Appends a convolution, batch norm and ReLU: three numbers of the Sequential.
inline void add_conv_norm_relu(Sequential& to, const Conv2dOptions& conv, Initializer& initializer) {
  to.add<Conv2d>(conv, initializer);
  to.add<BatchNorm2d>({.channels = conv.out, .activation = Activation::relu});
}

/// Appends dropout, where the options ask for it, and the linear layer that makes the logits, as "2": behind a pool and
/// a flatten, and of the same name with dropout as without.
inline void add_last_linear(Sequential& classifier, const LinearOptions& linear, const ModelOptions& options,
                            Initializer& initializer) {
  if (options.dropout > 0.0) classifier.add("dropout", std::make_unique<Dropout>(options.dropout));
  classifier.add("2", std::make_unique<Linear>(linear, initializer));
}

}  // namespace tandem::layers
