// A number that each rank shows, read by all others.
#include "tandem/comm/transports/shared_memory/first_fault.h"
#include "tandem/comm/transports/shared_memory/peer_processes.h"
#include "tandem/core/error.h"

#include <algorithm>
#include <chrono>
#include <sstream>

namespace tandem::comm {

namespace {

/// Throws Error where the number that `rank` tells of is not there.
void try_to_read(const PeerProcesses& peers, int rank, const std::string& told) {
  std::istringstream text(told);
  std::uint64_t address = 0, expected = 0, found = 0;
  text >> address >> expected;
  peers.read(rank, address, &found, sizeof found);
  require(found == expected, "the memory of process {} is not that of rank {}", peers.process(rank), rank);
}

}  // namespace

bool PeerProcesses::are_all_here() const {
  return std::ranges::all_of(peers_, [](const Peer& peer) { return peer.is_here; });
}

std::string obstacle_to_reading(Backend& backend, const PeerProcesses& peers) {
  const Place place = backend.place();
  const volatile auto shown = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  const auto address = reinterpret_cast<std::uintptr_t>(&shown);
  const auto all = backend.all_gather_bytes(fmt::format("{} {}", address, shown + 0));
  std::string fault;
  try {
    for (int rank = 0; rank < place.size; ++rank)
      if (!peers.is_here(rank)) try_to_read(peers, rank, all[static_cast<std::size_t>(rank)]);
  } catch (const Error& error) {
    fault = error.what();
  }
  return first_fault(backend, fault);  // after which nobody reads `shown` any more
}

}  // namespace tandem::comm
