// From a backend's name to a process group.
#include "comm/mpi_environment.h"
#include "comm/mpi_runtime.h"
#include "comm/process_group.h"
#include "comm/ring_backend.h"

namespace tandem::comm {

std::unique_ptr<ProcessGroup> make_process_group(std::string_view backend, MpiEnvironment& environment) {
  require(backend == "auto" || backend == "self" || backend == "mpi" || backend == "ring",
          "unknown backend '{}': choose auto, self, mpi or ring", backend);
  const bool alone = environment.size() == 1;
  if (backend == "self" || (backend == "auto" && alone)) {
    require(alone, "backend self is for one process, but {} started {}: choose auto, mpi or ring",
            environment.launch().launcher, environment.size());
    return std::make_unique<ProcessGroup>(make_self_backend());
  }
  environment.initialize();
#if TANDEM_HAS_MPI
  auto mpi = detail::make_mpi_backend();
  if (backend == "mpi") return std::make_unique<ProcessGroup>(std::move(mpi));
  return std::make_unique<ProcessGroup>(make_ring_backend(std::move(mpi), detail::make_mpi_transport()));
#else
  fail("backend {}: this program was built without MPI", backend);
#endif
}

}  // namespace tandem::comm
