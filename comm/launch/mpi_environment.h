// MpiEnvironment: MPI's life in a program, from main's first line to its last.
#pragma once

#include "tandem/comm/launch/launch.h"
#include "tandem/comm/launch/network_interface.h"
#include "tandem/core/error.h"

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::comm {

/// What this build lacks for MPI and what to install, in one line; empty where MPI is there.
std::string_view missing_mpi();

/// What keeps the ranks of this host from beginning: told once for each host.
class HostError : public Error {
 public:
  using Error::Error;
};

/// One object at the top of main, alive as long as any process group. Started by a launcher (mpirun, srun), it
/// initialises MPI; started alone it leaves MPI asleep until somebody asks for a backend that needs it. Ended by an
/// exception it aborts all ranks, so that none waits for this one for ever.
class MpiEnvironment {
 public:
  /// `interface`: the network interface that ranks of several hosts use, as find_interface() takes it
  /// (network_interface.h); "" leaves the choice to the libraries. It goes before what their environment variables say.
  /// Throws AgreedError where a launcher started several processes that could not find each other (see check_launch),
  /// and for an interface where there is one process, which has no use for it, or another MPI library than Open MPI,
  /// which takes none. Throws HostError where this host has no such one.
  explicit MpiEnvironment(std::string_view interface = {});
  ~MpiEnvironment();
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;

  /// What the launcher's variables say.
  const Launch& launch() const { return launch_; }
  /// This rank's number in the whole run; 0 when started alone.
  int rank() const { return rank_; }
  /// Ranks of the whole run; 1 when started alone.
  int size() const { return size_; }
  /// "Open MPI v4.1.4", or "none" in a build without MPI or before it was initialised.
  const std::string& mpi_library() const { return mpi_library_; }

  /// The one that was asked for; nothing where none was.
  const std::optional<NetworkInterface>& interface() const { return interface_; }

  /// Initialises MPI, if that was not done yet: without a launcher, as a world of one. Error without MPI in the build.
  void initialize();

  /// Ends all ranks at once with this exit code.
  [[noreturn]] void abort(int exit_code) const;

 private:
  Launch launch_;
  std::optional<NetworkInterface> interface_;
  int rank_ = 0;
  int size_ = 1;
  bool owns_mpi_ = false;
  bool initialized_ = false;
  std::string mpi_library_ = "none";
};

/// What main does: makes the environment, runs `body` and returns its exit code. Exceptions end as one line on stderr:
/// an AgreedError (on all ranks alike) is printed by rank 0, and every rank returns 2; any other error of one rank is
/// printed by that rank, which then aborts all with code 2 (Error) or 1 (anything else). `print`: who is given that
/// line, without its end, in place of stderr. `interface`: of the environment. Example:
///     #include "tandem/comm/process_group.h"
///     int main() {
///       return run_program([](MpiEnvironment& environment) {
///         const auto group = make_process_group("auto", environment);
///         std::printf("rank %d of %d\n", group->rank(), group->size());
///         return 0;
///       });
///     }
int run_program(const std::function<int(MpiEnvironment&)>& body,
                const std::function<void(const std::string& line)>& print = {}, std::string_view interface = {});

}  // namespace tandem::comm
