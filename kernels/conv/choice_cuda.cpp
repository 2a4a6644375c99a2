// Which family of kernels, or cuDNN, runs a geometry.
#include "tandem/kernels/conv/choice_cuda.h"

#include "tandem/kernels/float32_products.h"
#include "tandem/kernels/notice.h"

namespace tandem::kernels::cuda {
namespace {

// As measured on an H100, with halves (docs/results/2026-11-26-h100.md): bytes read and written each second, and the
// operations of warps that multiply by themselves, and of a library that uses whole warpgroups. The tuner asks the
// clock instead.
constexpr double kBandwidth = 3.0e12, kOurRate = 260e12, kLibraryRate = 600e12;

double operations_of_output(const ConvGeometry& g) { return 2.0 * static_cast<double>(g.group_c() * g.r * g.s); }

/// First layers of networks: kernels of ours read the image once, and write outputs and mask once. Writing an output
/// takes longer than summing it up even at our rate, and a library would leave the mask to another pass.
bool is_first_layer(const ConvGeometry& g, ConvPass pass, const Operands& operands) {
  const bool stores_longest =
      operations_of_output(g) / kOurRate <= static_cast<double>(size_of(operands.dtype)) / kBandwidth;
  if (!stores_longest) return false;
  const ConvFamily& family = *choose_family(g, ConvImpl::automatic, operands).family;
  return family.for_first_layers && (pass != ConvPass::backward_input || family.backward_input != nullptr);
}

}  // namespace

bool pays_beside_library(const ConvGeometry& g, const FusionSavings& savings) {
  if (savings.family.fuses_beside_library) return true;
  const double lost = operations_of_output(g) * (savings.computed / kOurRate - 1.0 / kLibraryRate);
  return lost < savings.bytes / kBandwidth;
}

FamilyChoice choose_family(const ConvGeometry& g, ConvImpl impl, const Operands& operands) {
  const std::span<const ConvFamily> all = conv_families();
  if (impl == ConvImpl::reference) return {all.data(), "it was asked for"};
  std::string_view reason = "";
  for (auto family = all.rbegin(); family != all.rend(); ++family) {
    if (family->stands_for ? family->stands_for != impl : family->pays != nullptr) continue;
    const std::string_view obstacle = family->obstacle(PassKind::forward, g, operands);
    if (obstacle.empty()) return {&*family, reason};
    if (reason.empty()) reason = obstacle;
  }
  fail("{} kernels must take every convolution", all.front().name);
}

FamilyChoice choose(const ConvGeometry& g, ConvImpl impl, const Operands& operands) {
  require(impl != ConvImpl::onednn, "conv2d: oneDNN runs on the CPU, the tensors are on a GPU; choose impl auto");
  const FamilyChoice choice = choose_family(g, impl, operands);
  const bool misses_tensor_cores =
      impl != ConvImpl::reference && operands.dtype != DType::f32 && !choice.family->has_tensor_cores;
  const bool misses_warpgroups = impl == ConvImpl::warpgroup && choice.family->stands_for != impl;
  if ((misses_tensor_cores || misses_warpgroups) && g.output_numel() > 0 && g.input_numel() > 0)
    notice(fmt::format("conv2d: {} x [N, {}, {}, {}], w [{}, {}, {}, {}] goes to the {} kernels: {}",
                       name_of(operands.dtype), g.c, g.h, g.w, g.k, g.group_c(), g.r, g.s, choice.family->name,
                       choice.reason));
  return choice;
}

const ConvFamily& family_for(PassKind pass, const ConvFamily& chosen, const ConvGeometry& g, const Operands& operands) {
  const std::span<const ConvFamily> all = conv_families();
  const ConvFamily* const last = all.data() + all.size();
  for (const ConvFamily* next = &chosen + 1; next < last && next->pays != nullptr; ++next)
    if (next->pays(pass, g) && next->obstacle(pass, g, operands).empty()) return *next;
  const ConvFamily* family = &chosen;
  while (pass == PassKind::backward_input && family->backward_input == nullptr) --family;
  return *family;
}

ConvPass library_pass(PassKind pass) {
  if (pass == PassKind::backward_input) return ConvPass::backward_input;
  return pass == PassKind::backward_weight ? ConvPass::backward_weight : ConvPass::forward;
}

ConvLibrary* select_library(const ConvGeometry& g, ConvImpl impl, ConvPass pass, const Operands& operands) {
  const bool automatic = impl == ConvImpl::automatic;
  const std::int64_t work = g.output_numel() * g.group_c() * g.r * g.s;
  if (!(automatic || impl == ConvImpl::cudnn) || work == 0 || g.input_numel() == 0) return nullptr;
  if (!pads_both_sides_alike(g)) return nullptr;
  if (automatic && (work < kLeastLibraryWork || is_first_layer(g, pass, operands))) return nullptr;
  // cuDNN multiplies f32 in full here.
  const bool tf32 = operands.dtype == DType::f32 && float32_products() != Float32Products::full;
  if (automatic && tf32 && choose_family(g, impl, operands).family->has_tensor_cores) return nullptr;
  ConvLibrary* const library = gpu_conv_library();
  const ConvTask task{g, operands.dtype, pass};
  if (library == nullptr || (operands.aligned && library->supports(task, operands.device))) return library;
  require(automatic,
          "conv2d: cuDNN has no deterministic code for {} of {} x [{}, {}, {}, {}], w [{}, {}, {}, {}], {} groups, at "
          "these addresses; choose impl auto",
          name_of(pass), name_of(task.dtype), g.n, g.c, g.h, g.w, g.k, g.group_c(), g.r, g.s, g.groups);
  return nullptr;
}

ConvRunner choose_runner(PassKind pass, const ConvGeometry& g, ConvImpl impl, const Operands& operands,
                         const Operands& all) {
  if (impl == ConvImpl::automatic) {  // before a library is asked, which takes time to answer
    const FamilyChoice choice = choose_family(g, impl, all);
    const ConvFamily& family = family_for(pass, *choice.family, g, all);
    if (family.beats_library != nullptr && family.beats_library(pass, g))
      return {.family = &family, .reason = choice.reason};
  }
  if (ConvLibrary* const library = select_library(g, impl, library_pass(pass), operands)) return {.library = library};
  const FamilyChoice choice = choose(g, impl, all);
  return {.family = &family_for(pass, *choice.family, g, all), .reason = choice.reason};
}

}  // namespace tandem::kernels::cuda
