// Elementwise layers: activations, dropout, scaling.
#pragma once

#include "tandem/layers/module.h"

namespace tandem::layers {

/// max(x, 0)
class ReLU final : public Module {
 public:
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return "ReLU"; }
};

/// x * Phi(x), the exact form (torch.nn.GELU's default; Hendrycks and Gimpel 2016).
class GELU final : public Module {
 public:
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return "GELU"; }
};

/// x * sigmoid(x)
class SiLU final : public Module {
 public:
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return "SiLU"; }
};

/// The hyperbolic tangent.
class Tanh final : public Module {
 public:
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return "Tanh"; }
};

/// 1 / (1 + exp(-x))
class Sigmoid final : public Module {
 public:
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return "Sigmoid"; }
};

/// x where x > 0, else negative_slope * x
class LeakyReLU final : public Module {
 public:
  explicit LeakyReLU(double negative_slope = 0.01) : negative_slope_(negative_slope) {}
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return fmt::format("LeakyReLU({})", negative_slope_); }

 private:
  double negative_slope_;
};

/// x min(max(x + 3, 0), 6) / 6
class Hardswish final : public Module {
 public:
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return "Hardswish"; }
};

/// Multiplies by a constant.
class Scale final : public Module {
 public:
  explicit Scale(double factor) : factor_(factor) {}
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return fmt::format("Scale({})", factor_); }

 private:
  double factor_;
};

/// torch.nn.Dropout: in training, zeroes each element with probability `p` in [0, 1) and scales the rest by 1 / (1 -
/// p). Every training forward draws another mask from the model's RandomState. A layer that was given none has its own,
/// whose seed is the layer's number in this process: programs that make the same layers in the same order draw the same
/// masks, and so do all ranks. Module::set_random_state() chooses the seed and gives each rank its own masks, as a
/// Trainer does. The identity in evaluation and where p is 0.
/// Example:
///     Dropout dropout(0.5);
///     dropout.set_random_state(std::make_shared<RandomState>(1));
///     const Tensor y = dropout(Tensor::full({2, 8}, 1.0));  // elements of 0 and 2
class Dropout final : public Module {
 public:
  explicit Dropout(double p);
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return fmt::format("Dropout({})", p_); }

 private:
  bool take_random_state(const std::shared_ptr<RandomState>& state, std::uint32_t layer) override;

  double p_;
  std::shared_ptr<RandomState> own_state_;
  std::shared_ptr<RandomState> state_ = own_state_;
  std::uint32_t layer_ = 0;
};

}  // namespace tandem::layers
