// Numbers with blanks between.
#include "tandem/comm/launch/host_cores.h"

#include "tandem/comm/launch/threads.h"
#include "tandem/core/parallel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

namespace tandem::comm {

std::string place_text(int node) {
  return fmt::format("{} {} {}", node, num_threads(), fmt::join(allowed_cores(), " "));
}

std::map<int, HostCores> cores_by_host(std::span<const std::string> place_texts) {
  std::map<int, HostCores> hosts;
  for (const std::string& text : place_texts) {
    std::istringstream numbers(text);
    int node = 0;
    std::size_t threads = 0;
    numbers >> node >> threads;
    HostCores& host = hosts[node];
    ++host.ranks;
    host.threads += threads;
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

bool has_spare_cores(const std::map<int, HostCores>& hosts) {
  return std::ranges::all_of(hosts, [](const auto& entry) {
    const HostCores& host = entry.second;
    return host.cores.size() >= host.threads + host.ranks;
  });
}

}  // namespace tandem::comm
