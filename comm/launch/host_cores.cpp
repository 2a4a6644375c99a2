// Numbers with blanks between.
#include "tandem/comm/launch/host_cores.h"

#include "tandem/comm/launch/threads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

namespace tandem::comm {

std::string place_text(int node) { return fmt::format("{} {}", node, fmt::join(allowed_cores(), " ")); }

std::map<int, HostCores> cores_by_host(std::span<const std::string> place_texts) {
  std::map<int, HostCores> hosts;
  for (const std::string& text : place_texts) {
    std::istringstream numbers(text);
    int node = 0;
    numbers >> node;
    HostCores& host = hosts[node];
    ++host.ranks;
    for (int core = 0; numbers >> core;) host.cores.insert(core);
  }
  return hosts;
}

int shared_cores(const std::map<int, HostCores>& hosts) {
  int least = 0;
  for (const auto& [node, host] : hosts) {
    const auto cores = static_cast<int>(host.cores.size());
    if (host.cores.empty() || host.ranks <= host.cores.size()) continue;
    if (least == 0 || cores < least) least = cores;
  }
  return least;
}

}  // namespace tandem::comm
