// The convolutions of known networks, and others that users spell out.
#pragma once

#include "tandem/kernels/conv/geometry.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::conv_bench {

/// One convolution with bias and ReLU: all but how many images it works on.
struct BenchLayer {
  std::string net, name;          // "vgg_lite", "2"; a shape of the user's has no net
  std::int64_t c, h, w, k, r, s;  // as in kernels/conv/conv.h
  std::int64_t stride, padding;
  bool is_first = false;   // of its network: nobody wants the gradient of its input
  std::int64_t count = 1;  // how often it comes in its network

  Shape x(std::int64_t batch) const { return {batch, c, h, w}; }
  Shape weight() const { return {k, c, r, s}; }
  kernels::Conv2dOptions options() const { return {{stride, stride}, {padding, padding}, {1, 1}, 1}; }
  kernels::ConvGeometry geometry(std::int64_t batch) const {
    return kernels::make_geometry(x(batch), weight(), options());
  }
  /// "vgg_lite 2: 32x32 32->64 3x3"
  std::string text() const;
};

/// The names layers_of() knows.
std::span<const std::string_view> net_names();

/// Each different convolution of a network once, in order. Throws Error for an unknown name, suggesting the nearest.
std::vector<BenchLayer> layers_of(std::string_view net);

/// "N,C,H,W,K,R,S,stride,pad"; N is the batch. Throws Error where these are not nine whole numbers that make a
/// convolution.
struct GivenShape {
  BenchLayer layer;
  std::int64_t batch;
};
GivenShape parse_shape(std::string_view text);

}  // namespace tandem::conv_bench
