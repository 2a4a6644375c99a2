// The per-channel side of batch normalisation: small [C] tensors of any floating dtype, as doubles.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/norm/batch_norm.h"

#include <vector>

namespace tandem::kernels::detail {

/// One number per channel.
using ChannelValues = std::vector<double>;

/// The elements of `tensor` ([C]), or `absent` for each channel where it is undefined.
ChannelValues load_channels(const Tensor& tensor, std::int64_t channels, double absent);

/// Writes to `tensor` ([C]), which has been marked as written; does nothing where it is undefined.
void store_channels(const ChannelValues& values, const Out& tensor);

/// Mean and sum of squared deviations from it, per channel, of `count` values.
struct ChannelMoments {
  std::int64_t count = 0;
  ChannelValues mean, squared_deviations;
};

/// What the moments of the batch are for: fills saved_mean and saved_inverse_std and moves the running statistics.
/// Saved values are rounded to their dtype first, so that forward and backward use the same ones.
void finish_batch_statistics(const ChannelMoments& moments, const BatchNormOptions& options, const Out& running_mean,
                             const Out& running_var, const Out& saved_mean, const Out& saved_inverse_std);

/// 1 / sqrt(variance + eps)
ChannelValues inverse_std_of(const ChannelValues& variance, double eps);

}  // namespace tandem::kernels::detail
