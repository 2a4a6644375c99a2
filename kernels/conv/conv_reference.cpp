// Convolution in plain loops: the oracle, and the path of f64.
#include "tandem/kernels/conv/implementations.h"

#include <algorithm>

namespace tandem::kernels::reference {
namespace {

template <typename T>
T rounded(double value) {
  return static_cast<T>(static_cast<compute_t<T>>(value));
}

/// Calls visit(output pixel, input pixel, tap) for every tap of the kernel that falls inside the image; pixels and taps
/// are counted in memory order.
template <typename Visit>
void for_each_tap(const ConvGeometry& g, Visit&& visit) {
  for (std::int64_t n = 0; n < g.n; ++n)
    for (std::int64_t p = 0; p < g.p; ++p)
      for (std::int64_t q = 0; q < g.q; ++q)
        for (std::int64_t r = 0; r < g.r; ++r)
          for (std::int64_t s = 0; s < g.s; ++s) {
            const std::int64_t row = p * g.stride_h - g.pad_h + r * g.dilation_h;
            const std::int64_t column = q * g.stride_w - g.pad_w + s * g.dilation_w;
            if (row < 0 || row >= g.h || column < 0 || column >= g.w) continue;
            visit((n * g.p + p) * g.q + q, (n * g.h + row) * g.w + column, r * g.s + s);
          }
}

/// Sums in double, one per element of `out`; add(element, value) is given to `fill`.
template <typename T, typename Fill>
void sum_into(const Out& out, Fill&& fill) {
  std::vector<double> sums(static_cast<std::size_t>(out.numel()), 0.0);
  fill(sums.data());
  T* to = out.data<T>();
  for (std::size_t i = 0; i < sums.size(); ++i) to[i] = rounded<T>(sums[i]);
}

}  // namespace

void conv2d_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry& g, bool relu,
                    const Out& y) {
  const std::int64_t c_count = g.group_c(), k_count = g.group_k();
  dispatch_floating(x.dtype(), "conv2d_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *px = x.data<T>(), *pw = w.data<T>();
    sum_into<T>(y, [&](double* sums) {
      for_each_tap(g, [&](std::int64_t out, std::int64_t in, std::int64_t tap) {
        for (std::int64_t k = 0; k < g.k; ++k) {
          const T* image = px + in * g.c + k / k_count * c_count;
          const T* weight = pw + (k * g.r * g.s + tap) * c_count;
          for (std::int64_t c = 0; c < c_count; ++c)
            sums[out * g.k + k] += static_cast<double>(image[c]) * static_cast<double>(weight[c]);
        }
      });
      for (std::int64_t i = 0; i < g.output_numel(); ++i) {
        if (bias.defined()) sums[i] += static_cast<double>(bias.data<T>()[i % g.k]);
        if (relu && sums[i] < 0.0) sums[i] = 0.0;
      }
    });
  });
}

void conv2d_backward_input(const Tensor& grad_y, const Tensor& w, const ConvGeometry& g, const Out& grad_x) {
  const std::int64_t c_count = g.group_c(), k_count = g.group_k();
  dispatch_floating(w.dtype(), "conv2d_backward_input", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *pg = grad_y.data<T>(), *pw = w.data<T>();
    sum_into<T>(grad_x, [&](double* sums) {
      for_each_tap(g, [&](std::int64_t out, std::int64_t in, std::int64_t tap) {
        for (std::int64_t k = 0; k < g.k; ++k) {
          const T* weight = pw + (k * g.r * g.s + tap) * c_count;
          double* to = sums + in * g.c + k / k_count * c_count;
          for (std::int64_t c = 0; c < c_count; ++c)
            to[c] += static_cast<double>(pg[out * g.k + k]) * static_cast<double>(weight[c]);
        }
      });
    });
  });
}

void conv2d_backward_weight(const Tensor& x, const Tensor& grad_y, const ConvGeometry& g, const Out& grad_w) {
  const std::int64_t c_count = g.group_c(), k_count = g.group_k();
  dispatch_floating(x.dtype(), "conv2d_backward_weight", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *pg = grad_y.data<T>(), *px = x.data<T>();
    sum_into<T>(grad_w, [&](double* sums) {
      for_each_tap(g, [&](std::int64_t out, std::int64_t in, std::int64_t tap) {
        for (std::int64_t k = 0; k < g.k; ++k) {
          const T* image = px + in * g.c + k / k_count * c_count;
          double* to = sums + (k * g.r * g.s + tap) * c_count;
          for (std::int64_t c = 0; c < c_count; ++c)
            to[c] += static_cast<double>(pg[out * g.k + k]) * static_cast<double>(image[c]);
        }
      });
    });
  });
}

void conv2d_backward_bias(const Tensor& grad_y, const Out& grad_bias) {
  const std::int64_t k = grad_y.size(1);
  dispatch_floating(grad_y.dtype(), "conv2d_backward_bias", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* pg = grad_y.data<T>();
    sum_into<T>(grad_bias, [&](double* sums) {
      for (std::int64_t i = 0, count = grad_y.numel(); i < count; ++i) sums[i % k] += static_cast<double>(pg[i]);
    });
  });
}

void sign_mask(const Tensor& y, const Out& mask) {
  auto* bytes = mask.data<std::uint8_t>();
  std::fill_n(bytes, mask.numel(), std::uint8_t{0});
  dispatch_floating(y.dtype(), "conv_bias_relu_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* py = y.data<T>();
    for (std::int64_t i = 0, count = y.numel(); i < count; ++i)
      if (static_cast<double>(py[i]) > 0.0) bytes[i / 8] = static_cast<std::uint8_t>(bytes[i / 8] | 1u << i % 8);
  });
}

void apply_mask(const Tensor& grad_y, const Tensor& mask, const Out& out) {
  const auto* bytes = mask.data<std::uint8_t>();
  dispatch_floating(grad_y.dtype(), "conv_bias_relu_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = grad_y.data<T>();
    T* to = out.data<T>();
    for (std::int64_t i = 0, count = grad_y.numel(); i < count; ++i)
      to[i] = (bytes[i / 8] >> i % 8 & 1) != 0 ? from[i] : T{};
  });
}

}  // namespace tandem::kernels::reference
