// Communicators that this library owns. Only for *_mpi.cpp files, which include <mpi.h> before it.
#pragma once

#include "tandem/comm/backends/mpi/mpi_runtime.h"
#include "tandem/comm/backends/owned_handle.h"

#include <exception>
#include <span>

namespace tandem::comm::detail {

struct ReleaseCommunicator {
  void operator()(MPI_Comm& communicator) const {
    int finalized = 0;
    MPI_Finalized(&finalized);
    // Freeing is collective: while an error takes this rank alone out of step it could wait for the others for ever.
    if (!finalized && std::uncaught_exceptions() == 0) MPI_Comm_free(&communicator);
  }
};

using Communicator = OwnedHandle<MPI_Comm, ReleaseCommunicator>;

/// A copy of `original` with messages of its own, whose errors come back as codes. Collective.
inline Communicator duplicate(MPI_Comm original) {
  MPI_Comm copy = MPI_COMM_NULL;
  TANDEM_CHECK_MPI(MPI_Comm_dup(original, &copy));
  Communicator result(copy, MPI_COMM_NULL);
  TANDEM_CHECK_MPI(MPI_Comm_set_errhandler(result.get(), MPI_ERRORS_RETURN));
  return result;
}

/// Of some ranks of `original`, which get the numbers of their places in `members`; errors come back as codes.
/// Collective over them.
inline Communicator communicator_of(MPI_Comm original, std::span<const int> members) {
  MPI_Group all = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  MPI_Comm communicator = MPI_COMM_NULL;
  TANDEM_CHECK_MPI(MPI_Comm_group(original, &all));
  TANDEM_CHECK_MPI(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &group));
  TANDEM_CHECK_MPI(MPI_Comm_create_group(original, group, 0, &communicator));
  Communicator result(communicator, MPI_COMM_NULL);
  TANDEM_CHECK_MPI(MPI_Group_free(&group));
  TANDEM_CHECK_MPI(MPI_Group_free(&all));
  TANDEM_CHECK_MPI(MPI_Comm_set_errhandler(result.get(), MPI_ERRORS_RETURN));
  return result;
}

}  // namespace tandem::comm::detail
