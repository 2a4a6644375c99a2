// Layers that shrink or flatten images.
// Example:
//     MaxPool2d pool(2), overlapping({.kernel = 3, .stride = 2, .padding = 1});
//     Flatten flatten;
//     const Tensor y = pool(Tensor::zeros({8, 64, 16, 16}));  // [8, 64, 8, 8]
//     const Tensor rows = flatten(y);                         // [8, 4096]
#pragma once

#include "tandem/kernels/pool/pool2d_options.h"
#include "tandem/layers/module.h"

namespace tandem::layers {

/// torch.nn.MaxPool2d: [N,C,H,W] -> [N,C,P,Q]. Throws Error for a kernel or stride below 1, and for padding that is
/// negative or more than half of the kernel; so does AvgPool2d.
class MaxPool2d final : public Module {
 public:
  /// What the constructor takes.
  using Options = kernels::Pool2dOptions;

  /// Windows of `options.kernel`.
  explicit MaxPool2d(const Options& options);
  /// Windows of size x size side by side.
  explicit MaxPool2d(std::int64_t size) : MaxPool2d(Options{.kernel = size}) {}
  /// Whether the windows are 2x2, side by side, without padding, and all of them whole.
  bool takes_pairs() const;
  Tensor forward(const Tensor& input) override;
  std::string describe() const override;

 private:
  Options options_;
};

/// torch.nn.AvgPool2d: [N,C,H,W] -> [N,C,P,Q].
class AvgPool2d final : public Module {
 public:
  /// What the constructor takes.
  using Options = kernels::Pool2dOptions;

  /// Windows of `options.kernel`, or of size x size side by side.
  /// @{
  explicit AvgPool2d(const Options& options);
  explicit AvgPool2d(std::int64_t size) : AvgPool2d(Options{.kernel = size}) {}
  /// @}
  Tensor forward(const Tensor& input) override;
  std::string describe() const override;

 private:
  Options options_;
};

/// torch.nn.AdaptiveAvgPool2d(1): [N,C,H,W] -> [N,C,1,1], the mean over each channel's image.
class GlobalAvgPool2d final : public Module {
 public:
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return "GlobalAvgPool2d"; }
};

/// torch.nn.Flatten: [N,C,H,W] -> [N, C*H*W], elements in C,H,W order whatever the storage.
class Flatten final : public Module {
 public:
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return "Flatten"; }
};

}  // namespace tandem::layers
