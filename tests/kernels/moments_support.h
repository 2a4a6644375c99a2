// Moments that a convolution leaves, against those of its result.
#pragma once

#include "tests/kernels/cuda_conv_support.h"

namespace tandem::test {

struct Moments {
  double count = 0, mean = 0, squares = 0;
};

/// Of a channel, all parts of [3, parts, channels] together.
inline Moments joined(const Tensor& moments, std::int64_t channel) {
  const std::vector<double> all = moments.to(Device{}).to_vector<double>();
  const std::int64_t parts = moments.size(1), channels = moments.size(2);
  const auto at = [&](std::int64_t field, std::int64_t part) {
    return all[static_cast<std::size_t>((field * parts + part) * channels + channel)];
  };
  Moments result;
  for (std::int64_t part = 0; part < parts; ++part) {
    result.count += at(0, part);
    result.mean += at(0, part) * at(1, part);
  }
  result.mean /= result.count;
  for (std::int64_t part = 0; part < parts; ++part) {
    const double delta = at(1, part) - result.mean;
    result.squares += at(2, part) + at(0, part) * delta * delta;
  }
  return result;
}

/// Of a channel of y [N, K, P, Q].
inline Moments moments_of(const Tensor& y, std::int64_t channel) {
  const Tensor here = in_f64(y.to(Device{}), kLast);
  const std::int64_t channels = y.size(1), pixels = y.numel() / channels;
  const auto value = [&](std::int64_t pixel) { return here.data<double>()[pixel * channels + channel]; };
  Moments result{static_cast<double>(pixels)};
  for (std::int64_t i = 0; i < pixels; ++i) result.mean += value(i) / result.count;
  for (std::int64_t i = 0; i < pixels; ++i) result.squares += (value(i) - result.mean) * (value(i) - result.mean);
  return result;
}

/// The first channel whose moments [3, parts, K], all parts together, are not those of y [N, K, P, Q], or "".
inline std::string moments_difference(const Tensor& moments, const Tensor& y) {
  for (std::int64_t channel = 0; channel < y.size(1); ++channel) {
    const Moments got = joined(moments, channel), wanted = moments_of(y, channel);
    const double deviation = std::sqrt(wanted.squares / wanted.count);
    if (got.count == wanted.count && std::fabs(got.mean - wanted.mean) <= 1e-5 * deviation &&
        std::fabs(got.squares - wanted.squares) <= 1e-5 * wanted.squares)
      continue;
    return "channel " + std::to_string(channel) + ": mean " + std::to_string(got.mean) + " for " +
           std::to_string(wanted.mean) + ", squares " + std::to_string(got.squares) + " for " +
           std::to_string(wanted.squares) + ", count " + std::to_string(got.count);
  }
  return "";
}

}  // namespace tandem::test
