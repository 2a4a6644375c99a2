// Every rank tells where it may run.
#include "tandem/comm/backends/native/host_cores.h"

#include "tandem/comm/launch/threads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace tandem::comm {

int shared_cores(Backend& group, std::span<const int> node_of_rank) {
  struct Host {
    std::size_t ranks = 0;
    std::set<int> cores = {};
  };
  std::map<int, Host> hosts;
  const std::vector<std::string> all = group.all_gather_bytes(fmt::format("{} ", fmt::join(allowed_cores(), " ")));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    Host& host = hosts[node_of_rank[rank]];
    ++host.ranks;
    std::istringstream numbers(all[rank]);
    for (int core = 0; numbers >> core;) host.cores.insert(core);
  }
  int least = 0;
  for (const auto& [node, host] : hosts) {
    const auto cores = static_cast<int>(host.cores.size());
    if (host.cores.empty() || host.ranks <= host.cores.size()) continue;
    if (least == 0 || cores < least) least = cores;
  }
  return least;
}

}  // namespace tandem::comm
