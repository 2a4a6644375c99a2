// From a backend's name to a process group.
#include "comm/agreement.h"
#include "comm/mpi_environment.h"
#include "comm/mpi_runtime.h"
#include "comm/ring_backend.h"

namespace tandem::comm {

namespace {

void check_name(std::string_view backend) {
  const bool known = backend == "auto" || backend == "self" || backend == "mpi" || backend == "ring";
  if (!known) throw AgreedError(fmt::format("unknown backend '{}': choose auto, self, mpi or ring", backend));
}

std::unique_ptr<ProcessGroup> group_of(std::unique_ptr<Backend> backend) {
  return std::make_unique<ProcessGroup>(std::move(backend));
}

}  // namespace

std::unique_ptr<ProcessGroup> make_process_group(std::string_view backend, MpiEnvironment& environment) {
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
    throw AgreedError(fmt::format("backend self is for one process, but {} started {}: choose auto, mpi or ring",
                                  environment.launch().launcher, environment.size()));
  }
  if (backend == "mpi") return mpi;
  return group_of(make_ring_backend(detail::make_mpi_backend(), detail::make_mpi_transport()));
#else
  fail("backend {}: this program was built without MPI", backend);
#endif
}

}  // namespace tandem::comm
