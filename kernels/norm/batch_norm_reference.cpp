// Batch normalisation in plain loops: any strides, any floating dtype, in double throughout.
#include "tandem/kernels/activation/plain_activations.h"
#include "tandem/kernels/image_view.h"
#include "tandem/kernels/norm/batch_norm_implementations.h"
#include "tandem/kernels/norm/channel_values.h"

namespace tandem::kernels::reference {

namespace {

using detail::ChannelValues;
using detail::load_channels;

/// A matrix [N, C] is an image of one pixel.
Tensor as_images(const Tensor& x) { return x.rank() == 4 ? x : x.unsqueeze(2).unsqueeze(3); }

/// Calls visit(n, c, h, w) for each element of an [N, C, H, W] tensor, channel by channel.
template <typename Visitor>
void for_each_element(const Tensor& x, Visitor&& visit) {
  for (std::int64_t c = 0; c < x.size(1); ++c) {
    for (std::int64_t n = 0; n < x.size(0); ++n) {
      for (std::int64_t h = 0; h < x.size(2); ++h) {
        for (std::int64_t w = 0; w < x.size(3); ++w) visit(n, c, h, w);
      }
    }
  }
}

/// What turns x into y: y = (x - mean) * inverse_std * weight + bias.
struct Transform {
  ChannelValues mean, inverse_std, weight, bias;

  Transform(const Tensor& x, const ChannelValues& mean_values, const ChannelValues& inverse_std_values,
            const Tensor& weight_tensor, const Tensor& bias_tensor)
      : mean(mean_values),
        inverse_std(inverse_std_values),
        weight(load_channels(weight_tensor, x.size(1), 1.0)),
        bias(load_channels(bias_tensor, x.size(1), 0.0)) {}

  double operator()(std::int64_t channel, double x) const {
    const auto c = static_cast<std::size_t>(channel);
    return (x - mean[c]) * inverse_std[c] * weight[c] + bias[c];
  }
};

/// Calls visit with the types of an element and of an activation.
template <typename Visitor>
void visit_types(DType dtype, std::string_view op, Activation activation, Visitor&& visit) {
  dispatch_floating(dtype, op, [&](auto tag) {
    visit_activation(activation, [&](auto kind) { visit(tag, activations::Of<kind>{}); });
  });
}

void normalise(const Tensor& x, const Transform& transform, Activation activation, const Out& y) {
  visit_types(x.dtype(), "batch_norm", activation, [&]<typename T, typename Function>(TypeTag<T>, Function) {
    const ImageView<const T> in(as_images(x));
    const ImageView<T> out(Out(as_images(y)));
    for_each_element(as_images(x), [&](std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
      out(n, c, h, w) = T(static_cast<compute_t<T>>(Function::value(transform(c, in(n, c, h, w)))));
    });
  });
}

detail::ChannelMoments moments_of(const Tensor& x) {
  const auto channels = static_cast<std::size_t>(x.size(1));
  detail::ChannelMoments moments{x.numel() / x.size(1), ChannelValues(channels), ChannelValues(channels)};
  dispatch_floating(x.dtype(), "batch_norm", [&](auto tag) {
    const ImageView<const typename decltype(tag)::type> in(as_images(x));
    const auto count = static_cast<double>(moments.count);
    for_each_element(as_images(x), [&](std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
      moments.mean[static_cast<std::size_t>(c)] += static_cast<double>(in(n, c, h, w)) / count;
    });
    for_each_element(as_images(x), [&](std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
      const double deviation = static_cast<double>(in(n, c, h, w)) - moments.mean[static_cast<std::size_t>(c)];
      moments.squared_deviations[static_cast<std::size_t>(c)] += deviation * deviation;
    });
  });
  return moments;
}

}  // namespace

void batch_norm_forward_train(const Tensor& x, const Tensor& weight, const Tensor& bias, const Out& running_mean,
                              const Out& running_var, const BatchNormOptions& options, const Out& y,
                              const Out& saved_mean, const Out& saved_inverse_std) {
  detail::finish_batch_statistics(moments_of(x), options, running_mean, running_var, saved_mean, saved_inverse_std);
  const Transform transform(x, saved_mean.tensor().to_vector<double>(), saved_inverse_std.tensor().to_vector<double>(),
                            weight, bias);
  normalise(x, transform, options.activation, y);
}

void batch_norm_forward_eval(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                             const Tensor& running_var, const BatchNormOptions& options, const Out& y,
                             const Out& saved_mean, const Out& saved_inverse_std) {
  detail::store_channels(running_mean.to_vector<double>(), saved_mean);
  detail::store_channels(detail::inverse_std_of(running_var.to_vector<double>(), options.eps), saved_inverse_std);
  const Transform transform(x, saved_mean.tensor().to_vector<double>(), saved_inverse_std.tensor().to_vector<double>(),
                            weight, bias);
  normalise(x, transform, options.activation, y);
}

void batch_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                         const Tensor& inverse_std, const BatchNormOptions& options, const Tensor& grad_y,
                         const Out& grad_x, const Out& grad_weight, const Out& grad_bias) {
  const Transform transform(x, mean.to_vector<double>(), inverse_std.to_vector<double>(), weight, bias);
  const auto channels = static_cast<std::size_t>(x.size(1));
  const std::int64_t values = x.numel() / x.size(1);
  const double count = static_cast<double>(values);
  const auto run = [&]<typename T, typename Function>(TypeTag<T>, Function) {
    const ImageView<const T> in(as_images(x)), gradient(as_images(grad_y));
    const auto passed = [&](std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) -> double {
      return Function::gradient(transform(c, in(n, c, h, w)), static_cast<double>(gradient(n, c, h, w)));
    };
    const auto normalised = [&](std::int64_t n, std::int64_t channel, std::int64_t h, std::int64_t w) {
      const auto c = static_cast<std::size_t>(channel);
      return (static_cast<double>(in(n, channel, h, w)) - transform.mean[c]) * transform.inverse_std[c];
    };
    ChannelValues sum(channels), sum_normalised(channels);
    for_each_element(as_images(x), [&](std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
      const double value = passed(n, c, h, w);
      sum[static_cast<std::size_t>(c)] += value;
      sum_normalised[static_cast<std::size_t>(c)] += value * normalised(n, c, h, w);
    });
    detail::store_channels(sum, grad_bias);
    detail::store_channels(sum_normalised, grad_weight);
    if (!grad_x.defined()) return;
    const ImageView<T> out(Out(as_images(grad_x)));
    for_each_element(as_images(x), [&](std::int64_t n, std::int64_t channel, std::int64_t h, std::int64_t w) {
      const auto c = static_cast<std::size_t>(channel);
      double value = passed(n, channel, h, w);
      if (options.training) value -= (sum[c] + normalised(n, channel, h, w) * sum_normalised[c]) / count;
      out(n, channel, h, w) = T(static_cast<compute_t<T>>(value * transform.weight[c] * transform.inverse_std[c]));
    });
  };
  visit_types(x.dtype(), "batch_norm_backward", options.activation, run);
}

}  // namespace tandem::kernels::reference
