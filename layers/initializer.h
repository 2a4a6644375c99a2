// First values of parameters: PyTorch's default distributions, drawn by Philox.
#pragma once

#include "tandem/core/random.h"
#include "tandem/core/tensor.h"

namespace tandem::layers {

/// Makes the parameters of a model, in the order its layers are constructed. The n-th drawn tensor comes from
/// RandomKey{seed, initialization, n} and its i-th element, in row-major order of its shape, from index i: the same
/// seed gives the same weights on every rank, machine and thread count, however they are stored.
/// Tensors are f32, tagged MemoryTag::parameters, leaves that require a gradient; 4-D ones are stored channels_last.
/// Example:
///     Initializer initializer(1);
///     const Tensor weight = initializer.kaiming_uniform({64, 3, 3, 3}, 3 * 3 * 3);
///     const Tensor bias = initializer.uniform({64}, 0.1);
///     const Tensor running_mean = Initializer::buffer({64}, 0.0);
class Initializer {
 public:
  /// The same seed draws the same parameters, in the order of the calls.
  explicit Initializer(std::uint64_t seed) : seed_(seed) {}

  /// Uniform in [-bound, bound).
  Tensor uniform(const Shape& shape, double bound);

  /// Normal with mean 0 and this standard deviation, as torch.nn.Embedding draws its weight (with 1).
  Tensor normal(const Shape& shape, double deviation);

  /// Kaiming-uniform with a = sqrt(5), as torch.nn.Conv2d and torch.nn.Linear draw weight and bias: bound
  /// 1 / sqrt(fan_in), with fan_in = C/groups * R * S, or the number of input features (He et al. 2015, eq. 10).
  Tensor kaiming_uniform(const Shape& shape, std::int64_t fan_in);

  /// A constant parameter, as batch norm has them. Draws nothing.
  static Tensor constant(const Shape& shape, double value);
  /// A constant tensor that requires no gradient, row-major.
  static Tensor buffer(const Shape& shape, double value, DType dtype = DType::f32);

 private:
  std::uint64_t seed_;
  std::uint32_t drawn_ = 0;
};

/// Makes filters 0 to min(K, C) - 1 of a convolution's weight [K, C, R, S] the identity: filter i is 1 at channel i in
/// the middle (R / 2, S / 2), else 0. The others stay as they are. Odd kernels with the padding that keeps the size
/// then pass their input on in the first channels. torch.nn.init.dirac_(weight[:C]), which networks with K >= C have.
/// Throws Error unless the weight has four dimensions.
/// Example:
///     Initializer initializer(1);
///     const Tensor weight = initializer.kaiming_uniform({64, 24, 3, 3}, 24 * 3 * 3);
///     set_identity_filters(weight);
///     const double middle = weight.to_vector<double>()[4];  // 1
void set_identity_filters(const Tensor& weight);

/// Divides a weight by the standard deviation of its elements, the root of the sum of squares from their mean over one
/// less than their number. Throws Error where that is 0 or not finite, and for fewer than two elements.
/// Example:
///     Initializer initializer(1);
///     const Tensor weight = initializer.kaiming_uniform({10, 256}, 256);
///     set_unit_deviation(weight);
void set_unit_deviation(const Tensor& weight);

}  // namespace tandem::layers
