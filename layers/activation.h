// Elementwise layers: activations, scaling.
// Example:
//     GELU gelu;
//     LeakyReLU leaky(0.1);
//     const double small = leaky(Tensor::full({1}, -2.0)).item();  // -0.2
//     const Tensor y = gelu(Tensor::full({2, 8}, 1.0));            // elements of 0.8413
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
  /// Throws Error unless the slope is a finite number.
  explicit LeakyReLU(double negative_slope = 0.01);
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return fmt::format("LeakyReLU({})", negative_slope_); }

 private:
  double negative_slope_;
};

/// x where x > 0, else alpha (exp(x / alpha) - 1) (Barron, arXiv:1704.07483)
class CELU final : public Module {
 public:
  /// Throws Error unless alpha is a finite number above 0.
  explicit CELU(double alpha = 1.0);
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return fmt::format("CELU({})", alpha_); }

 private:
  double alpha_;
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
  /// Throws Error unless the factor is a finite number.
  explicit Scale(double factor);
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return fmt::format("Scale({})", factor_); }

 private:
  double factor_;
};

}  // namespace tandem::layers
