// What the tensor-core convolutions take, and why not the rest.
#include "kernels/conv/implementations.h"

#include <limits>

namespace tandem::kernels::cuda::implicit_gemm {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<int>::max() / 2;

/// Offsets, also those of taps outside of an image, are 32-bit numbers.
bool fits_indices(const ConvGeometry& g) {
  const auto reach = [](std::int64_t size, std::int64_t pad, std::int64_t taps, std::int64_t dilation) {
    return size + 2 * pad + taps * dilation;
  };
  const std::int64_t sizes[] = {g.n,        g.c,        g.k,     g.r,     g.s,          g.h,         g.w,
                                g.stride_h, g.stride_w, g.pad_h, g.pad_w, g.dilation_h, g.dilation_w};
  for (const std::int64_t size : sizes)
    if (size > kMost) return false;
  const double image = static_cast<double>(reach(g.h, g.pad_h, g.r, g.dilation_h)) *
                       static_cast<double>(reach(g.w, g.pad_w, g.s, g.dilation_w));
  const double gradient =
      static_cast<double>(reach(g.p, 0, g.r, g.dilation_h)) * static_cast<double>(reach(g.q, 0, g.s, g.dilation_w));
  const double most = static_cast<double>(kMost), images = static_cast<double>(g.n);
  return images * image * static_cast<double>(g.c) <= most && images * gradient * static_cast<double>(g.k) <= most &&
         static_cast<double>(g.k) * static_cast<double>(g.r * g.s) * static_cast<double>(g.c) <= most;
}

bool is_aligned(const Tensor& tensor) {
  return !tensor.defined() || reinterpret_cast<std::uintptr_t>(tensor.raw_data()) % 16 == 0;
}

std::string_view obstacle(const ConvGeometry& g, DType dtype) {
  if (dtype != DType::f16 && dtype != DType::bf16) return "tensor cores multiply f16 and bf16 here";
  if (g.groups != 1) return "there is more than one group";
  if (g.c % 8 != 0 || g.k % 8 != 0) return "channels are no multiples of 8 (copies of 16 bytes)";
  if (g.input_numel() == 0 || g.output_numel() == 0) return "a tensor is empty";
  if (!fits_indices(g)) return "the tensors, with padding, have more than 2^30 elements (32-bit offsets)";
  return "";
}

}  // namespace

std::string_view obstacle(const ConvGeometry& g, DType dtype, std::initializer_list<Tensor> tensors) {
  const std::string_view reason = obstacle(g, dtype);
  if (!reason.empty()) return reason;
  for (const Tensor& tensor : tensors)
    if (!is_aligned(tensor)) return "a tensor begins at no multiple of 16 bytes";
  return "";
}

void require_no_obstacle(std::string_view op, const ConvGeometry& g, DType dtype,
                         std::initializer_list<Tensor> tensors) {
  const std::string_view reason = obstacle(g, dtype, tensors);
  require(
      reason.empty(),
      "{}: the tensor-core kernels do not run {} of x [{}, {}, {}, {}], w [{}, {}, {}, {}]: {}; use --conv-impl auto",
      op, name_of(dtype), g.n, g.c, g.h, g.w, g.k, g.group_c(), g.r, g.s, reason);
}

}  // namespace tandem::kernels::cuda::implicit_gemm
