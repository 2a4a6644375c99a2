// Residual blocks (He, Zhang, Ren, Sun: "Deep residual learning for image recognition", CVPR 2016).
#pragma once

#include "tandem/layers/batch_norm.h"
#include "tandem/layers/convolution.h"
#include "tandem/layers/dropout.h"
#include "tandem/layers/sequential.h"

namespace tandem::layers {

/// x + body(x), where body keeps the shape; while training, DropPath(drop_path) of body(x). Children: body and, where
/// drop_path is above 0, drop_path.
class Residual final : public Module {
 public:
  /// Throws Error without a body, and for a drop_path outside of [0, 1).
  explicit Residual(std::unique_ptr<Sequential> body, double drop_path = 0.0);
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return "Residual"; }

 private:
  std::unique_ptr<Sequential> body_;
  DropPath drop_path_;
};

/// Two convolutions of 3x3, and a projection where the shape changes.
struct BasicBlockOptions {
  std::int64_t in = 0, out = 0;  ///< channels
  std::int64_t stride = 1;       ///< of the first convolution
  double drop_path = 0.0;        ///< probability to leave the residual branch out of a sample while training
  kernels::ConvImpl impl = kernels::ConvImpl::automatic;  ///< which code computes the convolutions
};

/// torchvision's BasicBlock: relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)), 3x3 convolutions without bias.
/// Children conv1, bn1, conv2, bn2 and, where stride or channels change, downsample (0: 1x1 convolution, 1: batch
/// norm); drop_path, behind bn2, where its probability is above 0.
/// Example:
///     Initializer initializer(1);
///     BasicBlock block({.in = 64, .out = 128, .stride = 2}, initializer);
///     const Tensor y = block(Tensor::zeros({2, 64, 16, 16}, {.layout = Layout::channels_last}));  // [2, 128, 8, 8]
class BasicBlock final : public Module {
 public:
  /// What the constructor takes.
  using Options = BasicBlockOptions;

  /// Draws weights as PyTorch does.
  BasicBlock(const Options& options, Initializer& initializer);
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return "BasicBlock"; }

 private:
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
  DropPath drop_path_;
  std::unique_ptr<Sequential> downsample_;  // absent where the shortcut is the identity
};

}  // namespace tandem::layers
