// A convolution library that a test controls: it notes what it is asked for and computes it by the reference.
#pragma once

#include "tandem/core/error.h"
#include "tandem/core/out.h"
#include "tandem/core/tensor.h"
#include "tandem/kernels/conv/cudnn/conv_library.h"
#include "tandem/kernels/conv/implementations.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace tandem::test {

class ScriptedConvLibrary final : public kernels::ConvLibrary {
 public:
  std::vector<kernels::ConvPass> refused;  // not supported
  std::vector<std::string> calls;
  int plans = 1;  // of passes that have no number of their own
  std::map<kernels::ConvPass, int> plans_of;
  std::vector<int> plans_run;

  std::string version() const override { return "scripted"; }

  bool supports(const kernels::ConvTask& task, Device) override {
    return std::find(refused.begin(), refused.end(), task.pass) == refused.end();
  }

  int plan_count(const kernels::ConvTask& task, Device device) override {
    if (!supports(task, device)) return 0;
    const auto own = plans_of.find(task.pass);
    return own == plans_of.end() ? plans : own->second;
  }

  void run(const kernels::ConvTask& task, const kernels::ConvTensors& tensors, int plan) override {
    using kernels::ConvPass;
    namespace reference = kernels::reference;
    require(plan >= 0 && plan < plan_count(task, tensors.y.device()), "no plan {} for {}", plan,
            kernels::name_of(task.pass));
    calls.emplace_back(kernels::name_of(task.pass));
    plans_run.push_back(plan);
    const auto here = [](const Tensor& tensor) { return tensor.defined() ? tensor.to(Device{}) : tensor; };
    const Tensor x = here(tensors.x), w = here(tensors.w), y = here(tensors.y), bias = here(tensors.bias);
    switch (task.pass) {
      case ConvPass::backward_input:
        reference::conv2d_backward_input(y, w, task.geometry, Out(x));
        return tensors.x.copy_from(x);
      case ConvPass::backward_relu_bias:
      case ConvPass::backward_input_relu:
      case ConvPass::backward_input_relu_bias: {
        const Tensor gate = here(tensors.gate);
        const Tensor bits = Tensor::empty(kernels::conv_mask_shape(x.shape()), {.dtype = DType::u8});
        reference::sign_mask(gate, Out(bits));
        const bool convolves = task.pass != ConvPass::backward_relu_bias;
        const Tensor whole = convolves ? empty_like(x) : y;
        if (convolves) reference::conv2d_backward_input(y, w, task.geometry, Out(whole));
        reference::apply_mask(whole, bits, Out(x));
        tensors.x.copy_from(x);
        if (task.pass == ConvPass::backward_input_relu) return;
        const std::vector<float> values = x.to_vector<float>();  // in the order of the shape
        const Tensor sums = Tensor::zeros({1, x.size(1)});
        const std::int64_t pixels = x.size(2) * x.size(3);
        for (std::int64_t i = 0; i < x.numel(); ++i)
          Out(sums).data<float>()[i / pixels % x.size(1)] += values[static_cast<std::size_t>(i)];
        return tensors.sums.copy_from(sums);
      }
      case ConvPass::backward_weight:
        reference::conv2d_backward_weight(x, y, task.geometry, Out(w));
        return tensors.w.copy_from(w);
      default: {
        const bool relu = task.pass == ConvPass::forward_relu || task.pass == ConvPass::forward_bias_relu;
        const bool has_bias = task.pass == ConvPass::forward_bias || task.pass == ConvPass::forward_bias_relu;
        reference::conv2d_forward(x, w, has_bias ? bias : Tensor(), task.geometry, relu, Out(y));
        return tensors.y.copy_from(y);
      }
    }
  }
};

}  // namespace tandem::test
