// Agreement on NCCL: first who is on which GPU with which library, then the common id, then the connection.
#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/nccl/nccl_backend.h"
#include "tandem/comm/backends/nccl/nccl_choice.h"
#include "tandem/comm/backends/nccl/nccl_start.h"
#include "tandem/core/device_query.h"

#include <optional>

namespace tandem::comm {

namespace {

NcclCandidate describe_rank(int node, Device device) {
  NcclCandidate mine;
  mine.node = node;
  mine.device = name_of(device);
  if (device.type != DeviceType::cuda) return mine;
  for (const DeviceDescription& other : list_devices()) {
    if (other.device != device) continue;
    mine.uuid = other.uuid;
    mine.pci_address = other.pci_address;
  }
  return mine;
}

}  // namespace

std::string_view missing_nccl() { return ""; }

NcclStart start_nccl(ProcessGroup& group, std::unique_ptr<Backend> others, Device device) {
  NcclStart start;
  NcclCandidate mine = describe_rank(group.node(), device);
  std::optional<LibraryFile> file;
  NcclOptions options;
  if (mine.has_gpu()) {
    try {
      options = nccl_options(environment_variable);
      const LibraryRequest request = nccl_library();
      file.emplace(request, library_files(request, environment_variable));
      mine.version = version_text(file->version());
    } catch (const Error& error) {
      mine.problem = error.what();
    }
  }
  std::vector<NcclCandidate> ranks;
  for (const std::string& text : group.all_gather_bytes(to_text(mine))) {
    ranks.push_back(read_nccl_candidate(text));
    start.has_gpus = start.has_gpus || ranks.back().has_gpu();
  }
  start.obstacle = nccl_obstacle(ranks);
  if (!start.obstacle.empty()) return start;

  const NcclConnector connector{.make_id = [file] { return make_nccl_id(*file); },
                                .start =
                                    [file, device](const std::string& id, ProcessGroup& members) {
                                      return start_nccl_communicator(*file, id, members.place(), device);
                                    }};
  try {
    start.backend = connect_nccl(group, std::move(others), connector, device, options);
  } catch (const AgreedError& error) {
    start.obstacle = error.what();
  }
  return start;
}

}  // namespace tandem::comm
