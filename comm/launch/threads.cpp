// Shares of a host's cores.
#include "tandem/comm/launch/threads.h"

#include "tandem/core/parallel.h"

#include <algorithm>
#include <sstream>
#include <thread>

namespace tandem::comm {

namespace {

CoreSet parse(const std::string& text) {
  std::istringstream stream(text);
  CoreSet cores;
  for (int core = 0; stream >> core;) cores.push_back(core);
  return cores;
}

}  // namespace

int fair_share(const CoreSet& mine, std::span<const CoreSet> all) {
  double share = 0.0;
  for (const int core : mine) {
    const auto users = std::count_if(all.begin(), all.end(), [core](const CoreSet& cores) {
      return std::find(cores.begin(), cores.end(), core) != cores.end();
    });
    share += 1.0 / static_cast<double>(std::max<std::ptrdiff_t>(users, 1));
  }
  return std::max(1, static_cast<int>(share + 1e-6));  // a sum of thirds may fall short of its whole number
}

int default_threads(ProcessGroup& group) {
  const CoreSet mine = allowed_cores();
  std::string text = std::to_string(group.node());
  for (const int core : mine) text += fmt::format(" {}", core);
  std::vector<CoreSet> here;
  for (const std::string& other : group.all_gather_bytes(text)) {
    CoreSet cores = parse(other);
    const int node = cores.front();
    cores.erase(cores.begin());
    if (node == group.node()) here.push_back(std::move(cores));
  }
  if (const int asked = threads_asked_for(); asked > 0) return asked;
  if (mine.empty()) return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / group.local_size());
  return fair_share(mine, here);
}

}  // namespace tandem::comm
