// What the *_mpi.cpp files give the rest of comm/; there is no other way to MPI. Internal to comm/. In a build without
// MPI (mpi_runtime_no_mpi.cpp) all that needs it throws missing_mpi().
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/transports/transport.h"

namespace tandem::comm::detail {

/// MPI_Init with the thread level this library needs: calls from any thread, one at a time. False if somebody else had
/// initialised MPI already, who then has to finalise it as well.
bool initialize_mpi();
void finalize_mpi() noexcept;
[[noreturn]] void abort_mpi(int exit_code);
int mpi_world_rank();
int mpi_world_size();
/// "Open MPI v4.1.4, ..."
std::string mpi_library_version();

/// Collective over the world, each with a communicator of its own.
std::unique_ptr<Backend> make_mpi_backend();
std::unique_ptr<Transport> make_mpi_transport();

/// Throws Error with the place, the expression, this rank and MPI's text unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* expression, const char* file, int line);

}  // namespace tandem::comm::detail

/// Every MPI call goes through this: check_mpi with the place and text of the call.
#define TANDEM_MPI(expression) ::tandem::comm::detail::check_mpi((expression), #expression, __FILE__, __LINE__)
