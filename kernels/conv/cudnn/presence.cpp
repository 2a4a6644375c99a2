// Whether there is a cuDNN to use.
#include "tandem/core/device_query.h"
#include "tandem/kernels/conv/cudnn/conv_library.h"

namespace tandem::kernels {

std::string_view name_of(ConvPass pass) {
  constexpr std::string_view kNames[] = {"the forward pass",
                                         "the forward pass with bias",
                                         "the forward pass with ReLU",
                                         "the forward pass with bias and ReLU",
                                         "the input gradient",
                                         "the input gradient through ReLU",
                                         "the input gradient through ReLU with its sums",
                                         "the weight gradient",
                                         "the gradient through ReLU with its sums"};
  return kNames[static_cast<std::size_t>(pass)];
}

const FoundLibrary<ConvLibrary>& find_cudnn() {
  // Never destroyed: the driver may be gone before static objects are.
  static const auto& found = *new FoundLibrary<ConvLibrary>(find_library<ConvLibrary>(open_cudnn));
  return found;
}

namespace {

std::optional<ConvLibrary*>& library_of_scope() {
  static std::optional<ConvLibrary*> library;
  return library;
}

}  // namespace

ConvLibrary* gpu_conv_library() {
  if (library_of_scope()) return *library_of_scope();
  return cuda_is_simulated() ? nullptr : find_cudnn().library.get();
}

ConvLibraryScope::ConvLibraryScope(ConvLibrary* library) : before_(library_of_scope()) { library_of_scope() = library; }

ConvLibraryScope::~ConvLibraryScope() { library_of_scope() = before_; }

std::string obstacle(ConvImpl impl, Device device) {
  if (impl == ConvImpl::warpgroup && device.type != DeviceType::cuda)
    return "warpgroups are a GPU's; choose auto, fused or onednn";
  if ((impl == ConvImpl::direct || impl == ConvImpl::winograd) && device.type != DeviceType::cpu)
    return fmt::format("'{}' is code for the CPU; choose auto or fused", name_of(impl));
  if (impl != ConvImpl::cudnn) return "";
  if (device.type != DeviceType::cuda) return "cuDNN runs on GPUs, not on the CPU; choose auto, fused or onednn";
  if (cuda_is_simulated()) return "cuDNN does not run on simulated GPUs; choose auto, fused or reference";
  const std::string& problem = find_cudnn().problem;
  return problem.empty() ? problem : problem + "; or choose auto or fused";
}

}  // namespace tandem::kernels
