// What Linux tells of this process's cores and of the process that started it.
#include "tandem/comm/launch/mpirun.h"
#include "tandem/comm/launch/threads.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>

namespace tandem::comm {

namespace {

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

/// The texts of a file in which each ends with a zero byte; none where it cannot be read.
std::vector<std::string> texts_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> texts;
  for (std::string text; std::getline(file, text, '\0');) texts.push_back(std::move(text));
  return texts;
}

}  // namespace

CoreSet allowed_cores() {
  CoreSet cores;
  const auto set = affinity_of(0);
  if (!set) return cores;
  for (int thread = 0; thread < CPU_SETSIZE; ++thread) {
    if (!CPU_ISSET(thread, &*set)) continue;
    const int core = core_of(thread);
    if (std::find(cores.begin(), cores.end(), core) == cores.end()) cores.push_back(core);
  }
  return cores;
}

bool undo_default_binding() {
  const auto mine = affinity_of(0), launchers = affinity_of(getppid());
  // A core each is what the default gives; more was asked for, perhaps out of sight.
  if (!mine || !launchers || CPU_COUNT(&*mine) >= CPU_COUNT(&*launchers) || allowed_cores().size() != 1) return false;
  if (!is_default_binding(environment_variable, launcher_call())) return false;
  return sched_setaffinity(0, sizeof(cpu_set_t), &*launchers) == 0;
}

ProcessCall launcher_call() {
  const std::string folder = "/proc/" + std::to_string(getppid());
  return {texts_of(folder + "/cmdline"), texts_of(folder + "/environ")};
}

}  // namespace tandem::comm
