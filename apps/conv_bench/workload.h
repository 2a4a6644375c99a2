// The tensors that one convolution with bias and ReLU works on, forward and backward.
#pragma once

#include "apps/conv_bench/layer_table.h"

namespace tandem::conv_bench {

/// All on one device and of one dtype. Inputs are random: x, w, bias, grad_y, and for backward without forward a random
/// `mask` with a `y` that fits it.
struct Workload {
  BenchLayer layer;
  std::int64_t batch;
  Tensor x = {}, w = {}, bias = {}, grad_y = {};
  Tensor y = {}, mask = {};                         // written by forward, read by backward
  Tensor grad_x = {}, grad_w = {}, grad_bias = {};  // grad_x is undefined for first layers
  Tensor grad_z = {};                               // for those who apply the mask in a pass of its own
  Tensor first_y = {}, first_mask = {};             // what `y` and `mask` were made as

  kernels::ConvGeometry geometry() const { return layer.geometry(batch); }
  Device device() const { return x.device(); }
  DType dtype() const { return x.dtype(); }
};

Workload make_workload(const BenchLayer& layer, std::int64_t batch, DType dtype, Device device);

/// Fills `mask` and `y` as make_workload did.
void restore_forward_results(const Workload& workload);

/// kernels::reference::sign_mask of a dense tensor on the CPU, by all threads.
void sign_mask_by_threads(const Tensor& y, const Tensor& mask);

}  // namespace tandem::conv_bench
