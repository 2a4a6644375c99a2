// Starting, ending and checking MPI.
#include "tandem/comm/backends/mpi/mpi_runtime.h"

#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/comm/launch/mpirun.h"
#include "tandem/core/failed_call.h"

#include <fmt/format.h>
#include <mpi.h>

#include <cstdlib>
#include <string_view>

namespace tandem::comm {

std::string_view missing_mpi() { return ""; }

}  // namespace tandem::comm

namespace tandem::comm::detail {

namespace {

bool is_running() {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

}  // namespace

void throw_if_mpi_failed(int code, const char* call, const SourceLine& where) {
  if (code == MPI_SUCCESS) [[likely]]
    return;
  char text[MPI_MAX_ERROR_STRING] = "unknown MPI error";
  int length = 0, rank = -1;
  if (is_running()) {
    MPI_Error_string(code, text, &length);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  }
  fail_call({.library = "MPI",
             .error = fmt::format("{} (code {})", text, code),
             .call = call,
             .where = where,
             .more = fmt::format("on rank {}", rank)});
}

bool initialize_mpi() {
  int initialized = 0;
  TANDEM_CHECK_MPI(MPI_Initialized(&initialized));
  int level = 0;
  if (initialized) {
    TANDEM_CHECK_MPI(MPI_Query_thread(&level));
  } else {
    TANDEM_CHECK_MPI(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level));
  }
  TANDEM_CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  TANDEM_CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  constexpr int kNeeded = MPI_THREAD_SERIALIZED;  // an unnamed enumeration in Open MPI 5, a macro in others
  require(level >= kNeeded,
          "this MPI library was built without thread support (level {}, needed {}: MPI_THREAD_SERIALIZED)", level,
          kNeeded);
  return !initialized;
}

void finalize_mpi() noexcept {
  if (is_running()) MPI_Finalize();
}

void abort_mpi(int exit_code) {
  // MPI_Abort of Open MPI also sends mpirun a notice to print, which may come before the line that says what was wrong.
  // Open MPI 4.1.4 over PMIx 4.2 garbled it in 10 % of our runs, and crashed in 2 %. Leaving without MPI_Finalize ends
  // the other ranks just as well, without the notice.
  const bool leaving_suffices = exit_code != 0 && ends_all_ranks_on_failure(environment_variable, launcher_call());
  if (is_running() && !leaving_suffices) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

int mpi_world_rank() {
  int rank = 0;
  TANDEM_CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  return rank;
}

int mpi_world_size() {
  int size = 1;
  TANDEM_CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  return size;
}

std::string mpi_thread_obstacle() {
  int level = 0;
  TANDEM_CHECK_MPI(MPI_Query_thread(&level));
  constexpr int kNeeded = MPI_THREAD_MULTIPLE;
  if (level >= kNeeded) return "";
  return fmt::format("MPI takes calls of one thread at a time (level {}; MPI_THREAD_MULTIPLE is {})", level, kNeeded);
}

std::string mpi_library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  TANDEM_CHECK_MPI(MPI_Get_library_version(text, &length));
  const std::string version(text, static_cast<std::size_t>(length));
  return version.substr(0, version.find_first_of("\n,"));
}

}  // namespace tandem::comm::detail
