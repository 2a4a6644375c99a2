// A build without NCCL.
#include "tandem/comm/backends/nccl/nccl_start.h"

namespace tandem::comm {

std::string_view missing_nccl() {
  return "this program was built without NCCL, which takes nccl.h and -DTANDEM_CUDA=ON";
}

NcclStart start_nccl(ProcessGroup&, std::unique_ptr<Backend>, Device) {
  NcclStart start;
  start.obstacle = missing_nccl();
  return start;
}

}  // namespace tandem::comm
