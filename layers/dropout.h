// Layers that leave parts out at random while training.
#pragma once

#include "tandem/layers/module.h"

namespace tandem::layers {

/// What such layers share. Every training forward draws other numbers from the model's RandomState. A layer that was
/// given none has its own, whose seed is the layer's number in this process: programs that make the same layers in the
/// same order draw the same, and so do all ranks. Module::set_random_state() chooses the seed and gives each rank
/// numbers of its own, as a Trainer does. The identity in evaluation and where p is 0.
class RandomLayer : public Module {
 public:
  Tensor forward(const Tensor& input) final;

 protected:
  /// Throws Error, which begins with `name`, unless p is in [0, 1).
  RandomLayer(std::string_view name, double p);

  double p() const { return p_; }  ///< the probability

  /// Of `input` while training, with the numbers of this draw.
  virtual Tensor apply(const Tensor& input, const RandomDraw& draw) = 0;

 private:
  bool take_random_state(const std::shared_ptr<RandomState>& state, std::uint32_t layer) override;

  double p_;
  std::shared_ptr<RandomState> own_state_;
  std::shared_ptr<RandomState> state_ = own_state_;
  std::uint32_t layer_ = 0;
};

/// torch.nn.Dropout: in training, zeroes each element with probability `p` in [0, 1) and scales the rest by 1 / (1 -
/// p); see RandomLayer.
/// Example:
///     Dropout dropout(0.5);
///     dropout.set_random_state(std::make_shared<RandomState>(1));
///     const Tensor y = dropout(Tensor::full({2, 8}, 1.0));  // elements of 0 and 2
class Dropout final : public RandomLayer {
 public:
  /// `p`: in [0, 1), to drop an element. Throws Error outside.
  explicit Dropout(double p) : RandomLayer("Dropout", p) {}
  std::string describe() const override { return fmt::format("Dropout({})", p()); }

 private:
  Tensor apply(const Tensor& input, const RandomDraw& draw) override;
};

/// Stochastic depth (Huang, Sun, Liu, Sedra, Weinberger, ECCV 2016), as timm's DropPath: in training, zeroes each
/// sample x[n] as a whole with probability `p` in [0, 1) and scales the others by 1 / (1 - p); see RandomLayer. At the
/// end of a residual branch it makes the block the identity for that sample.
/// Example:
///     DropPath drop_path(0.5);
///     drop_path.set_random_state(std::make_shared<RandomState>(1));
///     const Tensor y = drop_path(Tensor::full({8, 4}, 1.0));  // rows of 0 and rows of 2
class DropPath final : public RandomLayer {
 public:
  /// `p`: in [0, 1), to drop a sample's branch. Throws Error outside.
  explicit DropPath(double p) : RandomLayer("DropPath", p) {}
  std::string describe() const override { return fmt::format("DropPath({})", p()); }

 private:
  Tensor apply(const Tensor& input, const RandomDraw& draw) override;
};

}  // namespace tandem::layers
