// Names, shapes and geometry of convolutions.
#include "tandem/core/describe.h"
#include "tandem/core/suggest.h"
#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/implementations.h"

#include <algorithm>
#include <limits>

namespace tandem::kernels {
namespace {

constexpr std::array<std::string_view, 8> kImplNames{"auto",  "reference", "fused",  "onednn",
                                                     "cudnn", "warpgroup", "direct", "winograd"};

/// Of strides, paddings and dilations: sums and products of them with sizes do not overflow.
constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

/// Output size along one dimension.
std::int64_t output_size(std::string_view dimension, std::int64_t input, std::int64_t kernel, std::int64_t stride,
                         std::int64_t padding, std::int64_t dilation) {
  const std::int64_t span = dilation * (kernel - 1) + 1;
  const std::int64_t room = input + 2 * padding - span;
  require(room >= 0,
          "conv2d: the kernel spans {} in {}, more than the padded input's {}: use a larger image or more padding",
          span, dimension, input + 2 * padding);
  return room / stride + 1;
}

}  // namespace

std::string_view name_of(ConvImpl impl) { return kImplNames[static_cast<std::size_t>(impl)]; }

std::span<const std::string_view> conv_impl_names() { return kImplNames; }

ConvImpl parse_conv_impl(std::string_view text) {
  for (std::size_t i = 0; i < kImplNames.size(); ++i)
    if (kImplNames[i] == text) return static_cast<ConvImpl>(i);
  fail("{}", unknown_name("convolution implementation", text, kImplNames));
}

Shape conv2d_output_shape(const Shape& x, const Shape& w, const Conv2dOptions& options) {
  require(x.rank() == 4 && w.rank() == 4, "conv2d: needs x [N,C,H,W] and w [K,C/groups,R,S], got x {}, w {}", x, w);
  const std::int64_t groups = options.groups;
  require(groups >= 1 && x[1] % groups == 0 && w[0] % groups == 0 && w[1] == x[1] / groups,
          "conv2d: channels do not fit: x {}, w {}, groups {}; w should be [K, {}/groups, R, S] with K a multiple of "
          "groups",
          x, w, groups, x[1]);
  require(w[2] >= 1 && w[3] >= 1, "conv2d: the kernel of w {} is empty", w);
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t stride = options.stride[at], dilation = options.dilation[at], padding = options.padding[at];
    require(stride >= 1 && dilation >= 1 && padding >= 0 && std::max({stride, dilation, padding}) <= kMost,
            "conv2d: stride and dilation must be at least 1, padding at least 0 and all at most {}, got stride {}, "
            "dilation {}, padding {}",
            kMost, stride, dilation, padding);
  }
  return {x[0], w[0], output_size("height", x[2], w[2], options.stride[0], options.padding[0], options.dilation[0]),
          output_size("width", x[3], w[3], options.stride[1], options.padding[1], options.dilation[1])};
}

Shape conv_mask_shape(const Shape& y) { return {(element_count(y) + 7) / 8}; }

ConvGeometry make_geometry(const Shape& x, const Shape& w, const Conv2dOptions& options) {
  const Shape y = conv2d_output_shape(x, w, options);
  return {.n = x[0],
          .c = x[1],
          .h = x[2],
          .w = x[3],
          .k = w[0],
          .r = w[2],
          .s = w[3],
          .p = y[2],
          .q = y[3],
          .groups = options.groups,
          .stride_h = options.stride[0],
          .stride_w = options.stride[1],
          .pad_h = options.padding[0],
          .pad_w = options.padding[1],
          .dilation_h = options.dilation[0],
          .dilation_w = options.dilation[1]};
}

ConvGeometry backward_input_as_forward(const ConvGeometry& g) {
  ConvGeometry as_forward = g;
  as_forward.c = g.k;
  as_forward.k = g.c;
  as_forward.h = g.p;
  as_forward.w = g.q;
  as_forward.p = g.h;
  as_forward.q = g.w;
  as_forward.pad_h = g.dilation_h * (g.r - 1) - g.pad_h;
  as_forward.pad_w = g.dilation_w * (g.s - 1) - g.pad_w;
  return as_forward;
}

ConvGeometry whole_windows(const ConvGeometry& g) {
  ConvGeometry whole = g;
  whole.p -= g.p % 2;
  whole.q -= g.q % 2;
  return whole;
}

bool pads_both_sides_alike(const ConvGeometry& g) {
  return g.p == (g.h + 2 * g.pad_h - g.dilation_h * (g.r - 1) - 1) / g.stride_h + 1 &&
         g.q == (g.w + 2 * g.pad_w - g.dilation_w * (g.s - 1) - 1) / g.stride_w + 1;
}

}  // namespace tandem::kernels
