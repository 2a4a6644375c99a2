// Whether there is a cuBLAS to use.
#include "tandem/core/device_query.h"
#include "tandem/kernels/gemm/cublas/matrix_library.h"

namespace tandem::kernels {

const FoundLibrary<MatrixLibrary>& find_cublas() {
  // Never destroyed: streams and the driver may be gone before static objects are.
  static const auto& found = *new FoundLibrary<MatrixLibrary>(find_library<MatrixLibrary>([] {
    const LibraryRequest request = cublas_library();
    return make_cublas({request, library_files(request, environment_variable)});
  }));
  return found;
}

std::string obstacle(GemmImpl impl, Device device) {
  if (impl != GemmImpl::cublas) return "";
  if (device.type != DeviceType::cuda) return "cuBLAS runs on GPUs, not on the CPU; choose auto or fused";
  if (cuda_is_simulated()) return "cuBLAS does not run on simulated GPUs; choose auto or fused";
  const std::string& problem = find_cublas().problem;
  return problem.empty() ? problem : problem + "; or choose auto or fused";
}

void require_possible(std::string_view op, GemmImpl impl, Device device) {
  if (impl != GemmImpl::cublas) return;
  const std::string reason = obstacle(impl, device);
  require(reason.empty(), "{}: {}", op, reason);
}

}  // namespace tandem::kernels
