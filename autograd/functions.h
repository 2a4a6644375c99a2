// All differentiable functions.
#pragma once

#include "autograd/functions/activation.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/augment.h"
#include "autograd/functions/avg_pool2d.h"
#include "autograd/functions/batch_norm.h"
#include "autograd/functions/cast.h"
#include "autograd/functions/conv2d.h"
#include "autograd/functions/conv_bias_relu.h"
#include "autograd/functions/conv_bias_relu_pool.h"
#include "autograd/functions/dropout.h"
#include "autograd/functions/global_avg_pool2d.h"
#include "autograd/functions/linear.h"
#include "autograd/functions/max_pool2d.h"
#include "autograd/functions/reduce.h"
#include "autograd/functions/shape.h"
#include "autograd/functions/softmax_cross_entropy.h"
