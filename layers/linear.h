// Fully connected layer.
#pragma once

#include "kernels/gemm/gemm_impl.h"
#include "layers/convolution.h"

namespace tandem::layers {

struct LinearOptions {
  Bias bias = Bias::present;
  bool relu = false;  // fused: then the layer stands for Linear and ReLU of an nn.Sequential
  kernels::GemmImpl impl = kernels::GemmImpl::automatic;
};

/// torch.nn.Linear: [N, in] -> [N, out]. Parameters: weight [out, in], bias [out].
class Linear final : public Module {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, Initializer& initializer, LinearOptions options = {});
  Tensor forward(const Tensor& input) override;
  std::string describe() const override;
  autograd::OpKind op_kind() const override { return autograd::OpKind::linear; }
  int sequential_slots() const override { return options_.relu ? 2 : 1; }

 private:
  LinearOptions options_;
  Tensor weight_, bias_;
};

}  // namespace tandem::layers
