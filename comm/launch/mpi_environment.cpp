// Starting and ending MPI around a program.
#include "tandem/comm/launch/mpi_environment.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/mpi/mpi_runtime.h"
#include "tandem/comm/doctor/leave_together.h"
#include "tandem/comm/launch/mpirun.h"
#include "tandem/comm/launch/threads.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace tandem::comm {

namespace {

/// The interface that is meant, which the libraries use from now on.
NetworkInterface choose_interface(std::string_view wanted, const Launch& launch) {
  if (launch.size <= 1)
    throw AgreedError(
        fmt::format("iface {}: this process is alone, and sends nothing to other hosts; leave it out, or start several "
                    "ranks by mpirun or srun",
                    wanted));
  const std::string library = detail::mpi_library_version();
  if (!library.starts_with("Open MPI"))
    throw AgreedError(
        fmt::format("iface {}: {} does not take it from a program; leave it out, and see to its own variables, such as "
                    "FI_TCP_IFACE or UCX_NET_DEVICES",
                    wanted, library));
  try {
    const NetworkInterface interface = find_interface(wanted, network_interfaces(), host_name());
    require(!interface.is_loopback || !launch.has_hosts,
            "iface {}: {} leads nowhere but to host {} itself, and there are several hosts; there are {}", wanted,
            interface.name, host_name(), text_of(network_interfaces()));
    use_interface(interface);
    return interface;
  } catch (const Error& error) {
    throw HostError(error.what());
  }
}

/// Ends all ranks before they have done anything.
[[noreturn]] void end_before_start() {
  constexpr std::chrono::milliseconds kForOthers{300};  // ranks of other hosts tell what is wrong there
  std::fflush(nullptr);
  std::this_thread::sleep_for(kForOthers);
  // Open MPI's mpirun may take minutes where ranks leave just when MPI is initialised.
  if (ends_all_ranks_on_failure(environment_variable, launcher_call())) std::_Exit(2);
  detail::initialize_mpi();
  detail::abort_mpi(2);
}

}  // namespace

MpiEnvironment::MpiEnvironment(std::string_view interface)
    : launch_(detect_launch([](const char* name) { return std::getenv(name); })) {
  rank_ = launch_.rank;
  try {
    check_launch(launch_, missing_mpi().empty());
  } catch (const Error& error) {
    throw AgreedError(error.what());  // the launcher's variables are alike on all ranks
  }
  if (!interface.empty()) interface_ = choose_interface(interface, launch_);
  if (launch_.size <= 1 && !launch_.reaches_mpi) return;
  if (missing_mpi().empty()) initialize();
  undo_default_binding();
}

MpiEnvironment::~MpiEnvironment() {
  if (!owns_mpi_) return;
  if (std::uncaught_exceptions() > 0) detail::abort_mpi(2);
  leave_together([] { detail::abort_mpi(2); });
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
                const std::function<void(const std::string& line)>& own_print, std::string_view interface) {
  const auto print = [&own_print](const std::string& line) {
    if (own_print)
      own_print(line);
    else
      std::fputs((line + "\n").c_str(), stderr);
  };
  const Launch launch = detect_launch([](const char* name) { return std::getenv(name); });
  try {
    MpiEnvironment environment(interface);
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
  } catch (const HostError& error) {
    if (launch.local_rank == 0) print(fmt::format("error: rank {}: {}", launch.rank, error.what()));
    end_before_start();
  } catch (const std::exception& error) {  // there is no environment
    if (launch.rank == 0) print(fmt::format("error: {}", error.what()));
    return 2;
  }
}

}  // namespace tandem::comm
