// Fully connected layer.
#pragma once

#include "tandem/kernels/gemm/gemm_impl.h"
#include "tandem/layers/initializer.h"
#include "tandem/layers/module.h"

namespace tandem::layers {

/// PyTorch's defaults.
struct LinearOptions {
  std::int64_t in = 0, out = 0;  ///< features
  bool bias = true;              ///< whether there is one for each output feature
  bool relu = false;             ///< fused: then the layer stands for Linear and ReLU of an nn.Sequential
  kernels::GemmImpl impl = kernels::GemmImpl::automatic;  ///< which code multiplies
};

/// torch.nn.Linear: [..., in] -> [..., out]. Parameters: weight [out, in], bias [out]. Throws Error where sizes are not
/// positive.
/// Example:
///     Initializer initializer(1);
///     Linear linear({.in = 256, .out = 10}, initializer);
///     const Tensor logits = linear(Tensor::zeros({8, 256}));  // [8, 10]
class Linear final : public Module {
 public:
  /// What the constructor takes.
  using Options = LinearOptions;

  /// Draws weight and bias as PyTorch does.
  Linear(const Options& options, Initializer& initializer);
  Tensor forward(const Tensor& input) override;
  std::string describe() const override;
  autograd::OpKind op_kind() const override { return autograd::OpKind::linear; }
  int sequential_slots() const override { return options_.relu ? 2 : 1; }

  /// [out, in].
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  ///< undefined where there is none

 private:
  Options options_;
  Tensor weight_, bias_;
};

}  // namespace tandem::layers
