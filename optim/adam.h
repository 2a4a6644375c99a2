// Adam and AdamW.
#pragma once

#include "tandem/optim/optimizer.h"

namespace tandem::optim {

/// PyTorch's names and defaults.
struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool amsgrad = false;
  bool master_weights = true;  // f32 copies of half parameters, which steps are taken in
};

/// torch.optim.Adam; weight decay is added to the gradient. The formulas are in kernels/optimizer/adam.h. Throws Error
/// on options out of range.
/// Example:
///     #include "tandem/autograd/functions.h"
///     const Tensor w = autograd::set_requires_grad(Tensor::full({}, 1.0));
///     Adam optimizer({w}, {.lr = 0.1});
///     optimizer.zero_grad();
///     autograd::backward(autograd::scale(w, 2.0));  // the loss
///     optimizer.step();
///     const double value = w.item();  // 0.9
class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Tensor> parameters, const AdamOptions& options = {})
      : Adam("Adam", std::move(parameters), options, false) {}

 protected:
  Adam(const std::string& name, std::vector<Tensor> parameters, const AdamOptions& options,
       bool decoupled_weight_decay);
  void update(std::span<const Update> updates) override;

 private:
  AdamOptions options_;
  bool decoupled_weight_decay_;
};

/// PyTorch's names and defaults of AdamW: those of Adam, but for weight_decay.
struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool master_weights = true;  // f32 copies of half parameters, which steps are taken in
};

/// torch.optim.AdamW; weight decay shrinks the parameter directly.
class AdamW : public Adam {
 public:
  explicit AdamW(std::vector<Tensor> parameters, const AdamWOptions& options = {});
};

}  // namespace tandem::optim
