// A convolution library that a test controls: it notes what it is asked for and computes it by the reference.
#pragma once

#include "core/tensor.h"
#include "kernels/conv/cudnn/conv_library.h"
#include "kernels/conv/implementations.h"

#include <algorithm>
#include <string>
#include <vector>

namespace tandem::test {

class ScriptedConvLibrary final : public kernels::ConvLibrary {
 public:
  std::vector<kernels::ConvPass> refused;  // not supported
  std::vector<std::string> calls;

  bool supports(const kernels::ConvTask& task, Device) override {
    return std::find(refused.begin(), refused.end(), task.pass) == refused.end();
  }

  void run(const kernels::ConvTask& task, const kernels::ConvTensors& tensors) override {
    using kernels::ConvPass;
    namespace reference = kernels::reference;
    calls.emplace_back(kernels::name_of(task.pass));
    const auto here = [](const Tensor& tensor) { return tensor.defined() ? tensor.to(Device{}) : tensor; };
    const Tensor x = here(tensors.x), w = here(tensors.w), y = here(tensors.y), bias = here(tensors.bias);
    switch (task.pass) {
      case ConvPass::backward_input:
        reference::conv2d_backward_input(y, w, task.geometry, x);
        return tensors.x.copy_from(x);
      case ConvPass::backward_weight:
        reference::conv2d_backward_weight(x, y, task.geometry, w);
        return tensors.w.copy_from(w);
      default: {
        const bool relu = task.pass == ConvPass::forward_relu || task.pass == ConvPass::forward_bias_relu;
        const bool has_bias = task.pass == ConvPass::forward_bias || task.pass == ConvPass::forward_bias_relu;
        reference::conv2d_forward(x, w, has_bias ? bias : Tensor(), task.geometry, relu, y);
        return tensors.y.copy_from(y);
      }
    }
  }
};

}  // namespace tandem::test
