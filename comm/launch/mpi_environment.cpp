// Starting and ending MPI around a program.
#include "tandem/comm/launch/mpi_environment.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/mpi/mpi_runtime.h"
#include "tandem/comm/doctor/leave_together.h"
#include "tandem/comm/launch/threads.h"

#include <cstdio>
#include <cstdlib>

namespace tandem::comm {

MpiEnvironment::MpiEnvironment() : launch_(detect_launch([](const char* name) { return std::getenv(name); })) {
  rank_ = launch_.rank;
  try {
    check_launch(launch_, missing_mpi().empty());
  } catch (const Error& error) {
    throw AgreedError(error.what());  // the launcher's variables are alike on all ranks
  }
  if (launch_.size <= 1 && !launch_.reaches_mpi) return;
  if (missing_mpi().empty()) initialize();
  undo_default_binding();
}

MpiEnvironment::~MpiEnvironment() {
  if (!owns_mpi_) return;
  if (std::uncaught_exceptions() > 0) detail::abort_mpi(2);
  leave_together();
  detail::finalize_mpi();
}

void MpiEnvironment::initialize() {
  if (initialized_) return;
  owns_mpi_ = detail::initialize_mpi();
  initialized_ = true;
  rank_ = detail::mpi_world_rank();
  size_ = detail::mpi_world_size();
  mpi_library_ = detail::mpi_library_version();
  check_world_size(launch_, size_, mpi_library_);
}

void MpiEnvironment::abort(int exit_code) const {
  std::fflush(nullptr);
  if (initialized_) detail::abort_mpi(exit_code);
  std::_Exit(exit_code);
}

int run_program(const std::function<int(MpiEnvironment&)>& body,
                const std::function<void(const std::string& line)>& own_print) {
  const auto print = [&own_print](const std::string& line) {
    if (own_print)
      own_print(line);
    else
      std::fputs((line + "\n").c_str(), stderr);
  };
  const int launched_rank = detect_launch([](const char* name) { return std::getenv(name); }).rank;
  try {
    MpiEnvironment environment;
    const auto lone = [&](const char* what, int exit_code) {
      print(environment.size() > 1 ? fmt::format("error: rank {}: {}", environment.rank(), what)
                                   : fmt::format("error: {}", what));
      if (environment.size() > 1) environment.abort(exit_code);
      return exit_code;
    };
    try {
      return body(environment);
    } catch (const AgreedError& error) {
      if (environment.rank() == 0) print(fmt::format("error: {}", error.what()));
      return 2;
    } catch (const Error& error) {
      return lone(error.what(), 2);
    } catch (const std::exception& error) {
      return lone(error.what(), 1);
    }
  } catch (const std::exception& error) {  // there is no environment
    if (launched_rank == 0) print(fmt::format("error: {}", error.what()));
    return 2;
  }
}

}  // namespace tandem::comm
