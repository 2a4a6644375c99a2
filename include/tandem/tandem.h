// All of Tandem that programs use; each library has a header like this one: tandem/core.h, tandem/autograd.h ...
// Example:
//     layers::Initializer initializer(1);
//     layers::Linear line({.in = 1, .out = 1}, initializer);
//     optim::SGD sgd(line.parameters(), {.lr = 0.1});
//     for (int step = 0; step < 100; ++step) {
//       sgd.zero_grad();
//       const Tensor y = line(Tensor::full({1, 1}, 1.0));
//       const Tensor miss = autograd::add(y, Tensor::full({1, 1}, -5.0));
//       autograd::backward(autograd::sum(autograd::mul(miss, miss)));
//       sgd.step();
//     }
//     const float five = line(Tensor::full({1, 1}, 1.0)).to_vector<float>()[0];  // 5: as the line learned
#pragma once

#include "tandem/autograd.h"
#include "tandem/comm.h"
#include "tandem/core.h"
#include "tandem/data.h"
#include "tandem/kernels.h"
#include "tandem/layers.h"
#include "tandem/optim.h"
#include "tandem/train.h"
