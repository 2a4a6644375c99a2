// What warpgroups take, why not the rest, and when they pay.
#include "tandem/core/cuda/device_limits.h"
#include "tandem/kernels/conv/warpgroup/plan.h"
#include "tandem/kernels/conv/warpgroup/warpgroup.h"

namespace tandem::kernels::cuda::warpgroup {
namespace {

// Narrower products leave parts of blocks empty, shallower ones end before the ring of stages is full.
constexpr std::int64_t kLeastColumns = 128, kLeastDepth = 64;
// Of outputs, which the gradient of w sums up over: about the fewest that were measured.
constexpr std::int64_t kLeastPixels = 1024;

/// Blocks of the forward pass or of the gradient of x: as many as there are tiles of it.
std::int64_t image_blocks(std::int64_t images, std::int64_t lines, std::int64_t line, std::int64_t columns) {
  const PixelBox box = choose_box(kImagePixels, images, lines, line);
  const int block_columns = takes_wide_block(columns) ? WideImageBlock::kColumns : ImageBlock::kColumns;
  return boxes_of(box, images, lines, line) * tiles_along(columns, block_columns);
}

/// True for products of some width and depth that have so many blocks.
bool has_blocks(PassKind pass, const ConvGeometry& g, std::int64_t least) {
  if (g.r * g.s == 1) return false;
  switch (pass) {
    case PassKind::forward:
      return g.k >= kLeastColumns && g.c >= kLeastDepth && image_blocks(g.n, g.p, g.q, g.k) >= least;
    case PassKind::backward_input:
      return g.c >= kLeastColumns && g.k >= kLeastDepth && image_blocks(g.n, g.h, g.w, g.c) >= least;
    case PassKind::backward_weight:
      return g.k >= kLeastColumns && g.c >= kLeastDepth && g.n * g.p * g.q >= kLeastPixels;
    default:
      return false;
  }
}

}  // namespace

bool pays(PassKind pass, const ConvGeometry& g) { return has_blocks(pass, g, implicit_gemm::kBlocksThatFill / 4); }

bool beats_library(PassKind pass, const ConvGeometry& g) {
  return pass == PassKind::backward_input && has_blocks(pass, g, implicit_gemm::kBlocksThatFill);
}

std::string_view obstacle(PassKind /*all*/, const ConvGeometry& g, const Operands& operands) {
  const auto of_geometry = [](const ConvGeometry& geometry) -> std::string_view {
    if (geometry.c % 8 != 0 || geometry.k % 8 != 0) return "channels are no multiples of 8 (copies of 16 bytes)";
    if (geometry.stride_h != 1 || geometry.stride_w != 1) return "strides are not 1";
    return "";
  };
  if (!TANDEM_HAS_SM90A) return "this build has no code for sm_90a (CMAKE_CUDA_ARCHITECTURES)";
  if (!is_half(operands.dtype)) return "warpgroups multiply f16 and bf16 here";
  if (const std::string_view reason = tensor_core_obstacle(of_geometry, g, operands); !reason.empty()) return reason;
  const bool has_wgmma = tandem::cuda::device_limits(operands.device).capability == 90;
  return has_wgmma ? "" : "the GPU's compute capability is not 9.0";
}

}  // namespace tandem::kernels::cuda::warpgroup
