// Which family of kernels, or cuDNN, runs a geometry.
#include "kernels/conv/choice_cuda.h"

#include "kernels/conv/cudnn/library_passes.h"
#include "kernels/float32_products.h"
#include "kernels/notice.h"

namespace tandem::kernels::cuda {
namespace {

// Assumed of large GPUs until they are measured: an H200 reads and writes 4.3 TB/s and multiplies halves at 790
// TFLOP/s. Warps that multiply by themselves reach half of that at best, and are planned for 40 %; a library that uses
// whole warpgroups is given 65 %. --autotune asks the clock instead.
constexpr double kBandwidth = 4.3e12, kPeak = 790e12, kOurRate = 0.40 * kPeak, kLibraryRate = 0.65 * kPeak;

double operations_of_output(const ConvGeometry& g) { return 2.0 * static_cast<double>(g.group_c() * g.r * g.s); }

/// First layers of networks: kernels of ours read the image once, and write outputs and mask once. Writing an output
/// takes longer than summing it up even at our rate, and a library would leave the mask to another pass.
bool is_for_few_channels(const ConvGeometry& g, ConvPass pass, const ConvTensors& tensors) {
  if (pass == ConvPass::backward_input) return false;  // no kernels for that
  const DType dtype = tensors.y.dtype();
  const bool stores_longest = operations_of_output(g) / kOurRate <= static_cast<double>(size_of(dtype)) / kBandwidth;
  return stores_longest &&
         choose_family(g, ConvImpl::automatic, dtype, {tensors.x, tensors.w, tensors.y}).family == Family::few_channels;
}

}  // namespace

bool pays_beside_library(const ConvGeometry& g, const FusionSavings& savings) {
  // Both wait for what they fetch where channels are few enough for weights that stay.
  if (savings.family == Family::stationary) return true;
  const double lost = operations_of_output(g) * (1.0 / kOurRate - 1.0 / kLibraryRate);
  return lost < savings.bytes / kBandwidth;
}

std::string_view name_of(Family family) {
  constexpr std::string_view kNames[] = {"naive", "tile", "few_channels", "implicit_gemm", "stationary", "warpgroup"};
  return kNames[static_cast<std::size_t>(family)];
}

FamilyChoice choose_family(const ConvGeometry& g, ConvImpl impl, DType dtype, std::initializer_list<Tensor> tensors) {
  if (impl == ConvImpl::reference) return {Family::naive, "it was asked for"};
  if (impl == ConvImpl::warpgroup) {
    const std::string_view reason = warpgroup::obstacle(g, dtype, tensors);
    if (reason.empty()) return {Family::warpgroup, ""};
    return {choose_family(g, ConvImpl::fused, dtype, tensors).family, reason};
  }
  const std::string_view reason = implicit_gemm::obstacle(g, dtype, tensors);
  if (reason.empty()) return {Family::implicit_gemm, ""};
  if (few_channels::obstacle(g, dtype, tensors).empty()) return {Family::few_channels, reason};
  return {tile::supports(g) ? Family::tile : Family::naive, reason};
}

Family choose(const ConvGeometry& g, ConvImpl impl, DType dtype, std::initializer_list<Tensor> tensors) {
  require(impl != ConvImpl::onednn, "conv2d: oneDNN runs on the CPU, the tensors are on a GPU; use --conv-impl auto");
  const FamilyChoice choice = choose_family(g, impl, dtype, tensors);
  const bool misses_tensor_cores =
      impl != ConvImpl::reference && dtype != DType::f32 && choice.family < Family::few_channels;
  const bool misses_warpgroups = impl == ConvImpl::warpgroup && choice.family != Family::warpgroup;
  if ((misses_tensor_cores || misses_warpgroups) && g.output_numel() > 0 && g.input_numel() > 0)
    notice(fmt::format("conv2d: {} x [N, {}, {}, {}], w [{}, {}, {}, {}] goes to the {} kernels: {}", name_of(dtype),
                       g.c, g.h, g.w, g.k, g.group_c(), g.r, g.s, name_of(choice.family), choice.reason));
  return choice.family;
}

bool is_for_stationary(StationaryPass pass, const ConvGeometry& g, DType dtype, std::initializer_list<Tensor> tensors) {
  return stationary::pays(pass, g) && stationary::obstacle(pass, g, dtype, tensors).empty();
}

ConvLibrary* select_library(const ConvGeometry& g, ConvImpl impl, ConvPass pass, const ConvTensors& tensors) {
  const bool automatic = impl == ConvImpl::automatic;
  const std::int64_t work = g.output_numel() * g.group_c() * g.r * g.s;
  if (!(automatic || impl == ConvImpl::cudnn) || work == 0 || g.input_numel() == 0) return nullptr;
  if (automatic && (work < kLeastLibraryWork || is_for_few_channels(g, pass, tensors))) return nullptr;
  // cuDNN multiplies f32 in full here.
  const bool tf32 = tensors.y.dtype() == DType::f32 && float32_products() != Float32Products::full;
  if (automatic && tf32 && implicit_gemm::obstacle(g, DType::f32, {tensors.x, tensors.w, tensors.y}).empty())
    return nullptr;
  ConvLibrary* const library = gpu_conv_library();
  const ConvTask task{g, tensors.y.dtype(), pass};
  if (library == nullptr || library_takes(*library, task, tensors)) return library;
  require(automatic,
          "conv2d: cuDNN has no deterministic code for {} of {} x [{}, {}, {}, {}], w [{}, {}, {}, {}], {} groups, at "
          "these addresses; use --conv-impl auto",
          name_of(pass), name_of(task.dtype), g.n, g.c, g.h, g.w, g.k, g.group_c(), g.r, g.s, g.groups);
  return nullptr;
}

}  // namespace tandem::kernels::cuda
