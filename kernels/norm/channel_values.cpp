// Per-channel numbers of batch normalisation.
#include "tandem/kernels/norm/channel_values.h"

#include <cmath>

namespace tandem::kernels::detail {

ChannelValues load_channels(const Tensor& tensor, std::int64_t channels, double absent) {
  return tensor.defined() ? tensor.to_vector<double>() : ChannelValues(static_cast<std::size_t>(channels), absent);
}

void store_channels(const ChannelValues& values, const Out& tensor) {
  if (!tensor.defined()) return;
  dispatch_floating(tensor.dtype(), "batch_norm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const to = tensor.data<T>();
    for (std::size_t c = 0; c < values.size(); ++c) {
      to[static_cast<std::int64_t>(c) * tensor.stride(0)] = T(static_cast<compute_t<T>>(values[c]));
    }
  });
}

ChannelValues inverse_std_of(const ChannelValues& variance, double eps) {
  ChannelValues result(variance.size());
  for (std::size_t c = 0; c < result.size(); ++c) result[c] = 1.0 / std::sqrt(variance[c] + eps);
  return result;
}

void finish_batch_statistics(const ChannelMoments& moments, const BatchNormOptions& options, const Out& running_mean,
                             const Out& running_var, const Out& saved_mean, const Out& saved_inverse_std) {
  const auto count = static_cast<double>(moments.count);
  ChannelValues variance = moments.squared_deviations;
  for (double& value : variance) value /= count;
  store_channels(moments.mean, saved_mean);
  store_channels(inverse_std_of(variance, options.eps), saved_inverse_std);

  const auto move = [&](const Out& running, const ChannelValues& batch, double factor) {
    ChannelValues values = load_channels(running, static_cast<std::int64_t>(batch.size()), 0.0);
    for (std::size_t c = 0; c < values.size(); ++c) {
      values[c] = (1.0 - options.momentum) * values[c] + options.momentum * factor * batch[c];
    }
    store_channels(values, running);
  };
  move(running_mean, moments.mean, 1.0);
  move(running_var, variance, count / (count - 1.0));
}

}  // namespace tandem::kernels::detail
