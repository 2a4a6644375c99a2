// The decision for or against NCCL.
#include "tandem/comm/backends/nccl/nccl_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tandem::comm {

namespace {

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

bool are_one(std::string_view a, std::string_view b) { return !a.empty() && a == b; }

bool share_a_gpu(const NcclCandidate& a, const NcclCandidate& b) {
  return a.node == b.node && (are_one(a.uuid, b.uuid) || are_one(a.pci_address, b.pci_address));
}

std::string shared_gpu(std::span<const NcclCandidate> ranks) {
  for (std::size_t first = 0; first < ranks.size(); ++first) {
    std::vector<std::size_t> together{first};
    for (std::size_t other = first + 1; other < ranks.size(); ++other) {
      if (share_a_gpu(ranks[first], ranks[other])) together.push_back(other);
    }
    if (together.size() == 1) continue;
    const NcclCandidate& one = ranks[first];
    const bool is_part = one.uuid != ranks[together[1]].uuid;
    return fmt::format("ranks {} are on one GPU ({}), where NCCL takes a single rank: start no more ranks than GPUs",
                       fmt::join(together, ", "), is_part ? "PCI " + one.pci_address : one.uuid);
  }
  return "";
}

}  // namespace

std::string to_text(const NcclCandidate& candidate) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", candidate.node, candidate.device, candidate.uuid, candidate.pci_address,
                     candidate.version, candidate.problem);
}

NcclCandidate read_nccl_candidate(std::string_view text) {
  NcclCandidate candidate;
  candidate.node = std::stoi(std::string(next_line(text)));
  candidate.device = next_line(text);
  candidate.uuid = next_line(text);
  candidate.pci_address = next_line(text);
  candidate.version = next_line(text);
  candidate.problem = text;
  return candidate;
}

std::string nccl_obstacle(std::span<const NcclCandidate> ranks) {
  std::vector<std::size_t> on_cpu;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (!ranks[rank].has_gpu()) on_cpu.push_back(rank);
  }
  if (!on_cpu.empty()) {
    return fmt::format("{} on the CPU, and NCCL works between GPUs only: give every rank a GPU",
                       on_cpu.size() == 1 ? fmt::format("rank {} computes", on_cpu.front())
                                          : fmt::format("ranks {} compute", fmt::join(on_cpu, ", ")));
  }
  if (const std::string shared = shared_gpu(ranks); !shared.empty()) return shared;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::string& problem = ranks[rank].problem;
    if (problem.empty()) continue;
    const bool everywhere =
        std::all_of(ranks.begin(), ranks.end(), [&](const NcclCandidate& other) { return other.problem == problem; });
    return everywhere ? problem : fmt::format("rank {}: {}", rank, problem);
  }
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    if (ranks[rank].version == ranks[0].version) continue;
    return fmt::format("rank 0 has NCCL {}, rank {} has {}: install one version on all hosts", ranks[0].version, rank,
                       ranks[rank].version);
  }
  return "";
}

}  // namespace tandem::comm
