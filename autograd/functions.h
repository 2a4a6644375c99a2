// All differentiable functions.
// Example:
//     #include "tandem/autograd/variable.h"
//     const Tensor w = set_requires_grad(Tensor::full({3}, 2.0));
//     backward(sum(mul(w, w)));
//     const std::vector<float> slope = grad(w).to_vector<float>();  // {4, 4, 4}
#pragma once

#include "tandem/autograd/functions/activation.h"
#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/augment.h"
#include "tandem/autograd/functions/avg_pool2d.h"
#include "tandem/autograd/functions/batch_norm.h"
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/functions/compare.h"
#include "tandem/autograd/functions/conv2d.h"
#include "tandem/autograd/functions/conv_bias_relu.h"
#include "tandem/autograd/functions/conv_bias_relu_pool.h"
#include "tandem/autograd/functions/copy.h"
#include "tandem/autograd/functions/dropout.h"
#include "tandem/autograd/functions/embedding.h"
#include "tandem/autograd/functions/global_avg_pool2d.h"
#include "tandem/autograd/functions/group_norm.h"
#include "tandem/autograd/functions/layer_norm.h"
#include "tandem/autograd/functions/linear.h"
#include "tandem/autograd/functions/losses.h"
#include "tandem/autograd/functions/max_pool2d.h"
#include "tandem/autograd/functions/nll_loss.h"
#include "tandem/autograd/functions/pointwise.h"
#include "tandem/autograd/functions/reduce.h"
#include "tandem/autograd/functions/reduction.h"
#include "tandem/autograd/functions/shape.h"
#include "tandem/autograd/functions/softmax.h"
#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/operators.h"
