// layers/: modules, networks made of them, and files of weights.
// Example:
//     Initializer initializer(1);
//     Linear linear({.in = 4, .out = 2}, initializer);
//     const Tensor y = linear(Tensor::zeros({8, 4}));  // [8, 2]
#pragma once

#include "tandem/layers/hooks.h"
#include "tandem/layers/initializer.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/mode_scope.h"
#include "tandem/layers/models/blocks.h"
#include "tandem/layers/models/models.h"
#include "tandem/layers/models/networks.h"
#include "tandem/layers/module.h"
#include "tandem/layers/random_state.h"
#include "tandem/layers/safetensors.h"
#include "tandem/layers/summary.h"
#include "tandem/layers/symmetric_eigen.h"
