// autograd/: differentiable functions, gradients, and how to make functions of your own (record(), gradcheck()).
// Example:
//     const Tensor x = set_requires_grad(Tensor::full({}, 3.0));
//     backward(mul(x, x));
//     const double slope = grad(x).item();  // 6
#pragma once

#include "tandem/autograd/functions.h"
#include "tandem/autograd/functions/activation.h"
#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/augment.h"
#include "tandem/autograd/functions/avg_pool2d.h"
#include "tandem/autograd/functions/batch_norm.h"
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/functions/conv2d.h"
#include "tandem/autograd/functions/conv_bias_relu.h"
#include "tandem/autograd/functions/conv_bias_relu_pool.h"
#include "tandem/autograd/functions/copy.h"
#include "tandem/autograd/functions/dropout.h"
#include "tandem/autograd/functions/global_avg_pool2d.h"
#include "tandem/autograd/functions/linear.h"
#include "tandem/autograd/functions/max_pool2d.h"
#include "tandem/autograd/functions/reduce.h"
#include "tandem/autograd/functions/shape.h"
#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/gradcheck.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/autograd/variable.h"
