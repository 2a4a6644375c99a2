// All layers.
// Example:
//     Initializer initializer(1);
//     Sequential network;
//     network.add<Conv2d>({.in = 3, .out = 32, .kernel = 3, .padding = 1, .relu = true}, initializer);
//     network.add<MaxPool2d>(2);
//     network.add<Flatten>();
//     network.add<Linear>({.in = 32 * 16 * 16, .out = 10}, initializer);
//     const Tensor logits = network(Tensor::zeros({8, 3, 32, 32}, {.layout = Layout::channels_last}));
#pragma once

#include "tandem/layers/activation.h"
#include "tandem/layers/batch_norm.h"
#include "tandem/layers/convolution.h"
#include "tandem/layers/dropout.h"
#include "tandem/layers/embedding.h"
#include "tandem/layers/fusion.h"
#include "tandem/layers/group_norm.h"
#include "tandem/layers/lambda.h"
#include "tandem/layers/layer_norm.h"
#include "tandem/layers/linear.h"
#include "tandem/layers/module_list.h"
#include "tandem/layers/pooling.h"
#include "tandem/layers/residual.h"
#include "tandem/layers/sequential.h"
#include "tandem/layers/whitening.h"
