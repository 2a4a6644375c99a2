// Whether the ranks of a run can use NCCL together: decided before NCCL starts, alike on all ranks.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tandem::comm {

/// What each rank sends to the others about itself.
struct NcclCandidate {
  int node = 0;             // Place::node
  std::string device;       // "cuda:0"; "cpu" where it computes there
  std::string uuid;         // of the GPU
  std::string pci_address;  // of the GPU, in its host
  std::string version;      // of the NCCL library: "2.28.9"
  std::string problem;      // why it cannot use NCCL, whatever the others do; empty if it can

  bool has_gpu() const { return device != "cpu"; }
  friend bool operator==(const NcclCandidate&, const NcclCandidate&) = default;
};

/// As bytes to be exchanged, and back.
std::string to_text(const NcclCandidate& candidate);
NcclCandidate read_nccl_candidate(std::string_view text);

/// Why these ranks cannot use NCCL together, and what would help, in one line; empty if they can. NCCL refuses two
/// ranks on one GPU, which is recognised by UUID or, for parts of one GPU (MIG), by address, among the ranks of a host.
std::string nccl_obstacle(std::span<const NcclCandidate> ranks);

}  // namespace tandem::comm
