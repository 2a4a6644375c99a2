// From a backend's name to a process group.
#include "tandem/comm/agreement.h"
#include "tandem/comm/backends.h"
#include "tandem/comm/backends/mpi/mpi_runtime.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/core/suggest.h"

#include <algorithm>

namespace tandem::comm {

namespace {

const BackendEntry& entry_of(std::string_view name) {
  const auto found = std::ranges::find(backends(), name, &BackendEntry::name);
  if (found == backends().end()) throw AgreedError(unknown_name("backend", name, backend_names()));
  if (const std::string_view missing = found->missing(); !missing.empty())
    throw AgreedError(fmt::format("backend {}: {}; or choose backend {}", name, missing, found->instead));
  return *found;
}

}  // namespace

std::unique_ptr<ProcessGroup> make_process_group(std::string_view name, MpiEnvironment& environment, Device device) {
  const std::string backend = current_backend_name(name);
  BackendRequest request{environment, device, {}};
  if (environment.size() > 1) {
    request.mpi = std::make_unique<ProcessGroup>(detail::make_mpi_backend());
    // Else some would wait for the others.
    check_same(*request.mpi, "the command line", fmt::format("backend={}", backend));
  }
  return entry_of(backend).make(request);
}

}  // namespace tandem::comm
