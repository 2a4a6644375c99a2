// What the *_mpi.cpp files give the rest of comm/; there is no other way to MPI. Internal to comm/. In a build without
// MPI (mpi_runtime_no_mpi.cpp) all that needs it throws missing_mpi().
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/backends/mpi/mpi_limits.h"
#include "tandem/comm/transports/transport.h"
#include "tandem/core/failed_call.h"

#include <memory>
#include <string>

namespace tandem::comm::detail {

/// MPI_Init with calls from several threads at once, which progress threads make; calls from any thread, one at a time,
/// will do without them. False if somebody else had initialised MPI already, who then has to finalise it as well.
bool initialize_mpi();
void finalize_mpi() noexcept;
[[noreturn]] void abort_mpi(int exit_code);
int mpi_world_rank();
int mpi_world_size();
/// Why several threads cannot call MPI at once; empty if they can.
std::string mpi_thread_obstacle();
/// "Open MPI v4.1.4, ..."
std::string mpi_library_version();

/// Collective over the world, each with a communicator of its own.
std::unique_ptr<Backend> make_mpi_backend(const MpiLimits& limits = {});
std::unique_ptr<Transport> make_mpi_transport();
/// Messages between all ranks of the world by its own communicator: nothing is exchanged beforehand, and nobody else
/// may send by it meanwhile.
std::unique_ptr<Transport> make_world_transport();

/// Throws Error with MPI's words for `code`, the call, its place and this rank, unless it is MPI_SUCCESS.
void throw_if_mpi_failed(int code, const char* call, const SourceLine& where);

}  // namespace tandem::comm::detail

/// Evaluates a call of MPI and throws Error where it fails. A macro only to have the call's text.
#define TANDEM_CHECK_MPI(call) ::tandem::comm::detail::throw_if_mpi_failed((call), #call, {__FILE__, __LINE__})
