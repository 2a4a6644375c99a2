// Asks the libraries of all ops.
#include "tandem/kernels/implementations.h"

#include "tandem/core/device_query.h"
#include "tandem/kernels/conv/cudnn/conv_library.h"
#include "tandem/kernels/gemm/cublas/matrix_library.h"

namespace tandem::kernels {

namespace {

std::string obstacle_to_onednn(Device device) {
  if (device.type != DeviceType::cpu) return "oneDNN runs on the CPU; choose auto or fused";
  return missing_onednn().empty() ? "" : fmt::format("{}; choose auto or fused", missing_onednn());
}

}  // namespace

void check_implementations(const Implementations& chosen, Device device) {
  const std::string conv = chosen.conv == ConvImpl::onednn ? obstacle_to_onednn(device) : obstacle(chosen.conv, device);
  const std::string gemm = obstacle(chosen.gemm, device);
  require(conv.empty(), "option conv_impl {}: {}", name_of(chosen.conv), conv);
  require(gemm.empty(), "option gemm_impl {}: {}", name_of(chosen.gemm), gemm);
}

std::string missing_libraries(const Implementations& chosen, Device device) {
  if (device.type != DeviceType::cuda || cuda_is_simulated()) return "";
  std::string text;
  const auto add = [&](std::string_view work, const std::string& problem) {
    if (!problem.empty()) text += fmt::format("{}{} by our own kernels: {}", text.empty() ? "" : "; ", work, problem);
  };
  if (chosen.conv == ConvImpl::automatic) add("convolutions", find_cudnn().problem);
  if (chosen.gemm == GemmImpl::automatic) add("matrix products", find_cublas().problem);
  return text;
}

}  // namespace tandem::kernels
