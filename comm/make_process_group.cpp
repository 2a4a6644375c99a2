// From a backend's name to a process group.
#include "tandem/comm/agreement.h"
#include "tandem/comm/backends.h"
#include "tandem/comm/backends/mpi/mpi_runtime.h"
#include "tandem/comm/doctor/watched_backend.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/core/suggest.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace tandem::comm {

namespace {

const BackendEntry& entry_of(std::string_view name) {
  const auto found = std::ranges::find(backends(), name, &BackendEntry::name);
  if (found == backends().end()) throw AgreedError(unknown_name("backend", name, backend_names()));
  if (const std::string_view missing = found->missing(); !missing.empty()) {
    const auto instead = std::ranges::find(backends(), found->instead, &BackendEntry::name);
    const bool is_there = instead != backends().end() && instead->missing().empty();
    throw AgreedError(
        fmt::format("backend {}: {}; or choose backend {}", name, missing, is_there ? found->instead : "self"));
  }
  return *found;
}

/// Throws AgreedError for an algorithm that there is not, or not of this backend.
void check_algorithm(std::string_view algorithm, std::string_view backend) {
  const std::vector<std::string> names = algorithm_names();
  if (std::ranges::find(names, algorithm) == names.end())
    throw AgreedError(unknown_name("all-reduce algorithm", algorithm, names));
  if (algorithm != "auto" && backend != "auto" && backend != "native" && backend != "threads")
    throw AgreedError(fmt::format("algorithm {}: is one of backend native, and {} has its own; choose backend native",
                                  algorithm, backend));
}

/// Throws AgreedError for a simulated network beside a backend whose messages cannot be held up.
void check_network(std::string_view network, std::string_view backend) {
  if (network.empty() || backend == "auto" || backend == "self" || backend == "native" || backend == "threads") return;
  throw AgreedError(
      fmt::format("network {}: is simulated by backend native, and {} sends messages of its own; choose backend native",
                  network, backend));
}

}  // namespace

std::unique_ptr<ProcessGroup> make_process_group(const GroupOptions& options, MpiEnvironment& environment) {
  std::string backend = current_backend_name(options.backend);
  BackendRequest request{environment, options.device, options.algorithm, options.network, {}};
  if (environment.size() > 1) {
    request.mpi = std::make_unique<ProcessGroup>(detail::make_mpi_backend());
    // Else some would wait for the others.
    check_same(*request.mpi, "the command line",
               fmt::format("backend={}\nalgorithm={}\nprogress={}\nnetwork={}\nchecks={}\n", backend, options.algorithm,
                           options.progress, options.network, options.checks));
  }
  check_algorithm(options.algorithm, backend);
  check_network(options.network, backend);
  const bool wants_native = options.algorithm != "auto" || !options.network.empty();
  if (wants_native && backend == "auto" && environment.size() > 1) backend = "native";
  WatchOptions watching{.timeout = options.timeout.value_or(default_timeout()),
                        .checks = options.checks,
                        .interface = environment.interface()};
  watching.end_all = [] { detail::abort_mpi(2); };
  require(watching.timeout >= 0.0 && std::isfinite(watching.timeout), "a timeout of {} seconds; give 0 for none",
          watching.timeout);
  auto group = entry_of(backend).make(request);
  group->watch(watching);
  // "auto" may have become a backend that needs no thread.
  const bool needs_none = options.backend == "auto" && group->progress().empty() && options.progress == "thread";
  group->set_progress(needs_none ? "auto" : options.progress);
  return group;
}

std::unique_ptr<ProcessGroup> make_process_group(std::string_view name, MpiEnvironment& environment, Device device) {
  return make_process_group({.backend = std::string(name), .device = device}, environment);
}

}  // namespace tandem::comm
