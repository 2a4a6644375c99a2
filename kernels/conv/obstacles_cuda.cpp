// What the tensor-core convolutions take, and why not the rest.
#include "core/cuda/device_limits.h"
#include "kernels/conv/few_channels/plan.h"
#include "kernels/conv/implementations.h"
#include "kernels/conv/stationary/plan.h"
#include "kernels/float32_products.h"

#include <algorithm>
#include <limits>

namespace tandem::kernels::cuda {
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

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

using Obstacle = std::string_view(const ConvGeometry& g);

std::string_view obstacle_of(Obstacle* of_geometry, const ConvGeometry& g, std::initializer_list<Tensor> tensors) {
  if (g.groups != 1) return "there is more than one group";
  if (const std::string_view reason = of_geometry(g); !reason.empty()) return reason;
  if (g.input_numel() == 0 || g.output_numel() == 0) return "a tensor is empty";
  if (!fits_indices(g)) return "the tensors, with padding, have more than 2^30 elements (32-bit offsets)";
  for (const Tensor& tensor : tensors)
    if (!is_aligned(tensor)) return "a tensor begins at no multiple of 16 bytes";
  return "";
}

/// The device of the first tensor that is defined.
Device device_of(std::string_view op, std::initializer_list<Tensor> tensors) {
  const auto* const any = std::find_if(tensors.begin(), tensors.end(), [](const Tensor& x) { return x.defined(); });
  require(any != tensors.end(), "{}: needs a tensor, to know the device", op);
  return any->device();
}

void require_none(std::string_view reason, std::string_view op, const ConvGeometry& g, DType dtype) {
  require(
      reason.empty(),
      "{}: the tensor-core kernels do not run {} of x [{}, {}, {}, {}], w [{}, {}, {}, {}]: {}; use --conv-impl auto",
      op, name_of(dtype), g.n, g.c, g.h, g.w, g.k, g.group_c(), g.r, g.s, reason);
}

}  // namespace

std::string_view implicit_gemm::obstacle(const ConvGeometry& g, DType dtype, std::initializer_list<Tensor> tensors) {
  const auto of_geometry = [](const ConvGeometry& geometry) -> std::string_view {
    return geometry.c % 8 != 0 || geometry.k % 8 != 0 ? "channels are no multiples of 8 (copies of 16 bytes)" : "";
  };
  if (dtype == DType::f32 && float32_products() == Float32Products::full)
    return "f32 is multiplied in full (--precision tf32 and 3xtf32 use tensor cores)";
  if (dtype != DType::f32 && !is_half(dtype)) return "tensor cores multiply f16, bf16 and f32 here";
  return obstacle_of(of_geometry, g, tensors);
}

void implicit_gemm::require_no_obstacle(std::string_view op, const ConvGeometry& g, DType dtype,
                                        std::initializer_list<Tensor> tensors) {
  require_none(obstacle(g, dtype, tensors), op, g, dtype);
}

std::string_view few_channels::obstacle(const ConvGeometry& g, DType dtype, std::initializer_list<Tensor> tensors) {
  const auto of_geometry = [](const ConvGeometry& geometry) -> std::string_view {
    constexpr std::int64_t kMostDepth = 256, kMostHalo = 16384;  // elements of shared memory
    if (geometry.k % 8 != 0) return "output channels are no multiple of 8 (stores of 16 bytes)";
    if (geometry.c * geometry.r * geometry.s > kMostDepth) return "a patch has more than 256 elements";
    if (geometry.n == 0 || geometry.p == 0 || geometry.q == 0) return "a tensor is empty";
    const TileExtent tile = extent_of_tile(geometry);
    const bool fits =
        static_cast<double>(tile.halo_lines) * static_cast<double>(pitch_of(tile.halo_row, geometry.c)) <= kMostHalo;
    return fits ? "" : "the part of an image that 128 outputs need has more than 16384 elements";
  };
  if (!is_half(dtype)) return "tensor cores multiply f16 and bf16 here";
  return obstacle_of(of_geometry, g, tensors);
}

void few_channels::require_no_obstacle(std::string_view op, const ConvGeometry& g, DType dtype,
                                       std::initializer_list<Tensor> tensors) {
  require_none(obstacle(g, dtype, tensors), op, g, dtype);
}

std::string_view stationary::obstacle(StationaryPass pass, const ConvGeometry& g, DType dtype,
                                      std::initializer_list<Tensor> tensors) {
  const auto of_geometry = [](const ConvGeometry& geometry) -> std::string_view {
    if (geometry.c % 8 != 0 || geometry.k % 8 != 0) return "channels are no multiples of 8 (copies of 16 bytes)";
    if (geometry.c > kMostChannels || geometry.k > kMostChannels) return "there are more than 128 channels";
    if (geometry.stride_h != 1 || geometry.stride_w != 1) return "strides are not 1";
    return "";
  };
  if (!is_half(dtype)) return "tensor cores multiply f16 and bf16 here";
  if (const std::string_view reason = obstacle_of(of_geometry, g, tensors); !reason.empty()) return reason;
  const bool of_weight = pass == StationaryPass::backward_weight;
  if (of_weight && (g.c > kMostWeightChannels || g.k > kMostWeightChannels || g.r * g.s > kMostWeightTaps))
    return "there are more than 64 channels or 9 taps (sums in registers)";
  const Task task(g, pass);
  if (task.lines() == 0 || task.line() == 0) return "there is no whole window to pool";
  const std::int64_t bytes = of_weight ? WeightParts(g).shared_bytes() : Plan(task).shared_bytes();
  const bool fits = bytes <= tandem::cuda::device_limits(device_of("stationary::obstacle", tensors)).shared_bytes;
  return fits ? "" : "two halos, and what goes with them, do not fit into the shared memory of a multiprocessor";
}

void stationary::require_no_obstacle(std::string_view op, StationaryPass pass, const ConvGeometry& g, DType dtype,
                                     std::initializer_list<Tensor> tensors) {
  require_none(obstacle(pass, g, dtype, tensors), op, g, dtype);
}

std::string_view warpgroup::obstacle(const ConvGeometry& g, DType dtype, std::initializer_list<Tensor> tensors) {
  const auto of_geometry = [](const ConvGeometry& geometry) -> std::string_view {
    if (geometry.c % 8 != 0 || geometry.k % 8 != 0) return "channels are no multiples of 8 (copies of 16 bytes)";
    if (geometry.stride_h != 1 || geometry.stride_w != 1) return "strides are not 1";
    return "";
  };
  if (!TANDEM_HAS_SM90A) return "this build has no code for sm_90a (CMAKE_CUDA_ARCHITECTURES)";
  if (!is_half(dtype)) return "warpgroups multiply f16 and bf16 here";
  if (const std::string_view reason = obstacle_of(of_geometry, g, tensors); !reason.empty()) return reason;
  const bool has_wgmma = tandem::cuda::device_limits(device_of("warpgroup::obstacle", tensors)).capability == 90;
  return has_wgmma ? "" : "the GPU's compute capability is not 9.0";
}

void warpgroup::require_no_obstacle(std::string_view op, const ConvGeometry& g, DType dtype,
                                    std::initializer_list<Tensor> tensors) {
  require_none(obstacle(g, dtype, tensors), op, g, dtype);
}

bool stationary::pays(StationaryPass pass, const ConvGeometry& g) {
  constexpr std::int64_t kMostForOneBlock = 64;  // channels, in and out, for which a block has all weights
  const Task task(g, pass);
  if (task.channels > kMostForOneBlock || task.columns > kMostForOneBlock || task.taps() == 1) return false;
  const std::int64_t tile_pixels = Plan(task).tile_lines * kTileColumns, tiles = tiles_of(task);
  const std::int64_t made = task.images * task.lines() * task.line();
  return tiles >= implicit_gemm::kBlocksThatFill && 5 * made >= 3 * tiles * tile_pixels;
}

}  // namespace tandem::kernels::cuda
