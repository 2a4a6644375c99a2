// Threads by affinity masks.
#include "tandem/comm/launch/threads.h"

#include "tandem/comm/launch/mpirun.h"
#include "tandem/core/parallel.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#ifdef __linux__
#include <sched.h>
#include <unistd.h>
#endif

namespace tandem::comm {

namespace {

#ifdef __linux__
std::optional<cpu_set_t> affinity_of(pid_t process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(process, sizeof(set), &set) != 0) return std::nullopt;
  return set;
}

/// The lowest number among the hardware threads that share a core with this one: "0,32" or "0-1" in sysfs.
int core_of(int hardware_thread) {
  std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", hardware_thread));
  int lowest = hardware_thread;
  file >> lowest;
  return file ? lowest : hardware_thread;
}
#endif

CoreSet parse(const std::string& text) {
  std::istringstream stream(text);
  CoreSet cores;
  for (int core = 0; stream >> core;) cores.push_back(core);
  return cores;
}

}  // namespace

CoreSet allowed_cores() {
  CoreSet cores;
#ifdef __linux__
  if (const auto set = affinity_of(0)) {
    for (int thread = 0; thread < CPU_SETSIZE; ++thread) {
      if (!CPU_ISSET(thread, &*set)) continue;
      const int core = core_of(thread);
      if (std::find(cores.begin(), cores.end(), core) == cores.end()) cores.push_back(core);
    }
  }
#endif
  return cores;
}

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

bool undo_default_binding() {
#ifdef __linux__
  const auto mine = affinity_of(0), launchers = affinity_of(getppid());
  // A core each is what the default gives; more was asked for, perhaps out of sight.
  if (!mine || !launchers || CPU_COUNT(&*mine) >= CPU_COUNT(&*launchers) || allowed_cores().size() != 1) return false;
  if (!is_default_binding(environment_variable, launcher_call())) return false;
  return sched_setaffinity(0, sizeof(cpu_set_t), &*launchers) == 0;
#else
  return false;
#endif
}

}  // namespace tandem::comm
