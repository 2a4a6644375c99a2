// From /proc/meminfo, and from the files of each control group from the process's own one up to the root. Containers
// and batch systems set limits at different levels.
#include "tandem/comm/transports/shared_memory/available_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>

namespace tandem::comm {

namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

/// Where a version of control groups keeps its numbers: under `folder`, in files and words of these names.
struct Version {
  std::string_view folder, limit, used;
  std::array<std::string_view, 3> reclaimable;  // words of memory.stat
};

constexpr Version kVersion1 = {"/sys/fs/cgroup/memory",
                               "memory.limit_in_bytes",
                               "memory.usage_in_bytes",
                               {"total_inactive_file", "total_active_file", "total_slab_reclaimable"}};
constexpr Version kVersion2 = {
    "/sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file", "active_file", "slab_reclaimable"}};

/// `otherwise` where there is no such file or no number in it, as "max".
std::int64_t number_in(const std::string& path, std::int64_t otherwise) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number && number >= 0 ? number : otherwise;
}

std::int64_t sum_of_words(const std::string& path, const std::array<std::string_view, 3>& words) {
  std::ifstream file(path);
  std::string word;
  std::int64_t bytes = 0, sum = 0;
  while (file >> word >> bytes)
    if (std::ranges::find(words, word) != words.end()) sum += std::clamp<std::int64_t>(bytes, 0, kUnlimited - sum);
  return sum;
}

/// What a group, as "/job/step", and those that it is part of leave to take.
std::int64_t left_in_groups(const std::string& root, const Version& version, std::filesystem::path group) {
  std::int64_t left = kUnlimited;
  while (true) {
    const auto file = [&](std::string_view name) {
      return fmt::format("{}{}{}/{}", root, version.folder, group.string(), name);
    };
    const std::int64_t limit = number_in(file(version.limit), kUnlimited),
                       used = number_in(file(version.used), 0) - sum_of_words(file("memory.stat"), version.reclaimable);
    left = std::min(left, limit - std::max<std::int64_t>(used, 0));
    if (group == group.parent_path()) return left;
    group = group.parent_path();
  }
}

/// Of a line of /proc/self/cgroup, "number:controllers:group": whether it is one of version 1 that counts memory.
bool counts_memory(std::string_view controllers) {
  while (true) {
    const std::size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "memory") return true;
    if (comma == std::string_view::npos) return false;
    controllers.remove_prefix(comma + 1);
  }
}

}  // namespace

std::int64_t available_memory(const std::string& root) {
  std::int64_t available = kUnlimited;
  std::ifstream machine(root + "/proc/meminfo");
  std::string word;
  for (std::int64_t kibibytes = 0; machine >> word; machine.ignore(kUnlimited, '\n'))
    if (word == "MemAvailable:" && machine >> kibibytes)
      available = std::clamp<std::int64_t>(kibibytes, 0, kUnlimited / 1024) * 1024;

  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos || line.find('/', second) != second + 1) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) available = std::min(available, left_in_groups(root, kVersion2, group));
    if (counts_memory(controllers)) available = std::min(available, left_in_groups(root, kVersion1, group));
  }
  return std::max<std::int64_t>(available, 0);
}

}  // namespace tandem::comm
