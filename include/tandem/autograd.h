// autograd/: differentiable functions, gradients, and how to make functions of your own (record(), gradcheck()).
// Example:
//     const Tensor x = set_requires_grad(Tensor::full({}, 3.0));
//     backward(mul(x, x));
//     const double slope = grad(x).item();  // 6
#pragma once

#include "tandem/autograd/elementwise.h"
#include "tandem/autograd/functions.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/gradcheck.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/autograd/variable.h"
