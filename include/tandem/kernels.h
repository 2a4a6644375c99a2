// kernels/: arithmetic that writes into tensors that are there, without gradients; autograd.h has the same with them.
// Example:
//     const Tensor x = Tensor::from<float>({-1, 2}, {2}), y = empty_like(x);
//     relu_forward(x, Out(y));
//     const std::vector<float> values = y.to_vector<float>();  // {0, 2}
#pragma once

#include "tandem/kernels/activation/gelu.h"
#include "tandem/kernels/activation/relu.h"
#include "tandem/kernels/activation/silu.h"
#include "tandem/kernels/augment/augment_images.h"
#include "tandem/kernels/augment/crop2d.h"
#include "tandem/kernels/augment/flip_horizontal.h"
#include "tandem/kernels/augment/pad2d.h"
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tandem/kernels/dropout/dropout.h"
#include "tandem/kernels/elementwise/add.h"
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/elementwise/mul.h"
#include "tandem/kernels/elementwise/scale.h"
#include "tandem/kernels/float32_products.h"
#include "tandem/kernels/gemm/gemm.h"
#include "tandem/kernels/gemm/linear.h"
#include "tandem/kernels/loss/softmax_cross_entropy.h"
#include "tandem/kernels/norm/batch_norm.h"
#include "tandem/kernels/notice.h"
#include "tandem/kernels/optimizer/adam.h"
#include "tandem/kernels/optimizer/all_finite.h"
#include "tandem/kernels/optimizer/norm.h"
#include "tandem/kernels/optimizer/rmsprop.h"
#include "tandem/kernels/optimizer/sgd.h"
#include "tandem/kernels/pool/avg_pool2d.h"
#include "tandem/kernels/pool/global_avg_pool2d.h"
#include "tandem/kernels/pool/max_pool2d.h"
#include "tandem/kernels/reduce/add_rows.h"
#include "tandem/kernels/reduce/sum.h"
#include "tandem/kernels/reduce/sum_to.h"
