// Asks the libraries of all ops.
#include "kernels/implementations.h"

#include "core/device_query.h"
#include "kernels/conv/cudnn/conv_library.h"
#include "kernels/gemm/cublas/matrix_library.h"

namespace tandem::kernels {

void check_implementations(const Implementations& chosen, Device device) {
  const std::string conv = obstacle(chosen.conv, device), gemm = obstacle(chosen.gemm, device);
  require(conv.empty(), "--conv-impl {}: {}", name_of(chosen.conv), conv);
  require(gemm.empty(), "--gemm-impl {}: {}", name_of(chosen.gemm), gemm);
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
