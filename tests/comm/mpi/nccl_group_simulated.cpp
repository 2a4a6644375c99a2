// The group of simulated GPUs.
#include "tests/comm/mpi/host_nccl.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/comm/mpi/nccl_group.h"
#include "tests/support/cuda_device.h"

namespace tandem::test {

namespace {

/// Of any ranks of the run: each connection has a group of its own between them.
comm::NcclConnector make_connector(Device device) {
  const std::shared_ptr<comm::Backend> all = comm::detail::make_mpi_backend();
  return {.make_id = [] { return std::string("id"); },
          .start =
              [all, device](const std::string& id, comm::ProcessGroup& group) {
                require(id == "id", "'{}' is no id", id);
                std::vector<int> members;
                for (const std::string& rank : group.all_gather_bytes(std::to_string(environment().rank())))
                  members.push_back(std::stoi(rank));
                return std::make_unique<HostNccl>(std::make_unique<comm::ProcessGroup>(all->subgroup(members)), device);
              }};
}

}  // namespace

std::unique_ptr<comm::ProcessGroup> make_nccl_group(Device& device) {
  if (!has_gpu()) return nullptr;
  device = kGpu;
  comm::ProcessGroup meeting(comm::detail::make_mpi_backend());
  auto others = std::make_unique<Punctual>(comm::detail::make_mpi_backend(), device);
  return std::make_unique<comm::ProcessGroup>(
      comm::connect_nccl(meeting, std::move(others), make_connector(device), device, comm::NcclOptions{}));
}

}  // namespace tandem::test
