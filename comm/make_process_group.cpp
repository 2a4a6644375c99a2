// From a backend's name to a process group.
#include "comm/agreement.h"
#include "comm/mpi_environment.h"
#include "comm/mpi_runtime.h"
#include "comm/nccl_start.h"
#include "comm/ring_backend.h"

#include <algorithm>
#include <iterator>

namespace tandem::comm {

namespace {

void check_name(std::string_view backend) {
  constexpr std::string_view kBackends[] = {"auto", "self", "mpi", "ring", "nccl"};
  if (std::find(std::begin(kBackends), std::end(kBackends), backend) == std::end(kBackends)) {
    throw AgreedError(fmt::format("unknown backend '{}': choose auto, self, mpi, ring or nccl", backend));
  }
  if (backend == "nccl" && TANDEM_HAS_NCCL == 0) {
    throw AgreedError(
        "backend nccl: this program was built without NCCL, which takes nccl.h and -DTANDEM_CUDA=ON: use --backend ring");
  }
}

std::unique_ptr<ProcessGroup> group_of(std::unique_ptr<Backend> backend, std::string notice = {}) {
  return std::make_unique<ProcessGroup>(std::move(backend), std::move(notice));
}

#if TANDEM_HAS_MPI
std::unique_ptr<ProcessGroup> make_ring_group(std::string notice = {}) {
  return group_of(make_ring_backend(detail::make_mpi_backend(), detail::make_mpi_transport()), std::move(notice));
}
#endif

#if TANDEM_HAS_MPI && TANDEM_HAS_NCCL
std::unique_ptr<ProcessGroup> make_nccl_group(ProcessGroup& mpi, Device device, bool fall_back) {
  NcclStart start = start_nccl(mpi, detail::make_mpi_backend(), device);
  if (start.backend) return group_of(std::move(start.backend));
  if (!fall_back) throw AgreedError(fmt::format("backend nccl: {}, or use --backend ring", start.obstacle));
  if (!start.has_gpus) return make_ring_group();
  return make_ring_group(fmt::format("using backend ring instead of nccl: {}", start.obstacle));
}
#endif

}  // namespace

std::unique_ptr<ProcessGroup> make_process_group(std::string_view backend, MpiEnvironment& environment,
                                                 [[maybe_unused]] Device device) {
  if (environment.size() == 1) {
    check_name(backend);
    if (backend == "auto" || backend == "self") return group_of(make_self_backend());
  }
  environment.initialize();
#if TANDEM_HAS_MPI
  auto mpi = group_of(detail::make_mpi_backend());
  check_same(*mpi, "the command line", fmt::format("backend={}", backend));  // else some would wait for the others
  check_name(backend);
  if (backend == "self") {
    throw AgreedError(fmt::format("backend self is for one process, but {} started {}: choose auto, mpi, ring or nccl",
                                  environment.launch().launcher, environment.size()));
  }
  if (backend == "mpi") return mpi;
#if TANDEM_HAS_NCCL
  if (backend != "ring") return make_nccl_group(*mpi, device, backend == "auto");
#endif
  return make_ring_group();
#else
  fail("backend {}: this program was built without MPI", backend);
#endif
}

}  // namespace tandem::comm
