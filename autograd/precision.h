// In which dtype each kind of op computes, where a network runs in half precision.
#pragma once

#include "tandem/core/tensor.h"

#include <array>
#include <string_view>

namespace tandem::autograd {

/// What a network computes in. The half ones are mixed: rule_of() says which tensors stay in f32. The TF32 ones store
/// f32, and differ in how a GPU's convolutions multiply it (kernels/float32_products.h).
enum class Precision : std::uint8_t { fp32, tf32x3, tf32, fp16, bf16 };

/// All of them, in the order of the enumerators.
inline constexpr std::array kPrecisions{Precision::fp32, Precision::tf32x3, Precision::tf32, Precision::fp16,
                                        Precision::bf16};

/// As `--precision` has it: "3xtf32".
constexpr std::string_view name_of(Precision precision) {
  constexpr std::string_view kNames[] = {"fp32", "3xtf32", "tf32", "fp16", "bf16"};
  return kNames[static_cast<int>(precision)];
}

/// The reverse; throws Error that names what there is.
Precision parse_precision(std::string_view name);

/// The dtype of half tensors, or f32.
constexpr DType storage_dtype(Precision precision) {
  constexpr DType kDTypes[] = {DType::f32, DType::f32, DType::f32, DType::f16, DType::bf16};
  return kDTypes[static_cast<int>(precision)];
}

/// From now on, convolutions of f32 multiply as `precision` says: a setting of the whole process. Throws Error for tf32
/// and 3xtf32 where `device` is the CPU.
void use_products_of(Precision precision, Device device);

/// Kinds of ops, by what half precision means to them. `normalization`: of batches, layers and groups. `exponential`:
/// exp, expm1, log, log1p, pow, reciprocal, rsqrt, softplus, a number over a tensor, softmax and log_softmax, which
/// PyTorch's autocast computes in f32. Other element-wise ops have no kind: they return the dtype that they are given.
enum class OpKind : std::uint8_t { convolution, linear, normalization, loss, reduction, exponential };

/// What half precision means for an op.
enum class Rule : std::uint8_t {
  /// All operands in half: products of halves are exact in f32, in which they are summed up.
  half_operands,
  /// Half in, half out, but statistics and parameters in f32: they are means over many values, and small steps.
  wide_parameters,
  /// Half in, f32 out: exponentials overflow in half, and sums of many values are beyond its range or its digits.
  wide_result,
};

/// The rule for a kind of op.
constexpr Rule rule_of(OpKind kind) {
  switch (kind) {
    case OpKind::convolution:
    case OpKind::linear:
      return Rule::half_operands;
    case OpKind::normalization:
      return Rule::wide_parameters;
    case OpKind::loss:
    case OpKind::reduction:
    case OpKind::exponential:
      return Rule::wide_result;
  }
  return Rule::half_operands;
}

/// f32 for the half dtypes, any other unchanged.
constexpr DType wide_dtype(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }

/// What the parameters of an op, and its statistics, are stored in.
/// Example:
///     const Precision precision = parse_precision("bf16");
///     const auto weights = name_of(parameter_dtype(OpKind::convolution, precision));  // "bf16"
///     const auto scales = name_of(parameter_dtype(OpKind::normalization, precision));    // "f32"
constexpr DType parameter_dtype(OpKind kind, Precision precision) {
  return rule_of(kind) == Rule::half_operands ? storage_dtype(precision) : DType::f32;
}

/// What an op returns for an input of this dtype.
constexpr DType result_dtype(OpKind kind, DType input) {
  return rule_of(kind) == Rule::wide_result ? wide_dtype(input) : input;
}

/// The input of an op with parameters: brought to the dtype of `weight` where the op's rule wants it and one of the two
/// is half, the other f32 (the images of a half network, say). The cast is recorded.
Tensor input_for(OpKind kind, const Tensor& x, const Tensor& weight);

}  // namespace tandem::autograd
