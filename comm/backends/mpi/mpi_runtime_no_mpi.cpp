// A build without MPI: one process, and an error for whoever asks for more.
#include "tandem/comm/backends/mpi/mpi_runtime.h"
#include "tandem/comm/launch/mpi_environment.h"

#include <cstdlib>

namespace tandem::comm {

std::string_view missing_mpi() {
  return "this program was built without MPI: install libopenmpi-dev and openmpi-bin and configure with "
         "-DTANDEM_MPI=ON";
}

namespace detail {

bool initialize_mpi() { fail("{}", missing_mpi()); }
void finalize_mpi() noexcept {}
void abort_mpi(int exit_code) { std::_Exit(exit_code); }
int mpi_world_rank() { fail("{}", missing_mpi()); }
int mpi_world_size() { fail("{}", missing_mpi()); }
std::string mpi_library_version() { fail("{}", missing_mpi()); }
std::unique_ptr<Backend> make_mpi_backend(const MpiLimits&) { fail("{}", missing_mpi()); }
std::unique_ptr<Transport> make_mpi_transport() { fail("{}", missing_mpi()); }
std::unique_ptr<Transport> make_world_transport() { fail("{}", missing_mpi()); }

}  // namespace detail
}  // namespace tandem::comm
