// Control groups, /proc/meminfo, and trying to write.
#include "group_limits.h"

#include "tandem/core/number_text.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

namespace tandem::apps::doctor {
namespace {

namespace fs = std::filesystem;

/// The first line of a small file; "" where there is none.
std::string line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

template <typename T>
void lower(std::optional<T>& limit, std::optional<T> other) {
  if (other && (!limit || *other < *limit)) limit = other;
}

/// Version 1 writes "no limit" as a number near 2^63.
std::optional<std::int64_t> bytes_in(const fs::path& path) {
  constexpr std::int64_t kUnlimited = std::int64_t{1} << 60;
  const auto bytes = parse_number<std::int64_t>(line_of(path));
  return bytes && *bytes < kUnlimited ? bytes : std::nullopt;
}

std::optional<double> cores_of(const std::string& quota, const std::string& period) {
  const auto microseconds = parse_number<double>(quota), of = parse_number<double>(period);
  if (!microseconds || !of || *microseconds <= 0.0 || *of <= 0.0) return std::nullopt;  // "max", or -1
  return *microseconds / *of;
}

/// What one group has, of either version.
void take_limits(const fs::path& group, GroupLimits& limits) {
  std::istringstream both(line_of(group / "cpu.max"));
  std::string quota, period;
  both >> quota >> period;
  lower(limits.cores, cores_of(quota, period));
  lower(limits.cores, cores_of(line_of(group / "cpu.cfs_quota_us"), line_of(group / "cpu.cfs_period_us")));
  for (const auto& [limit, use] :
       {std::pair{"memory.max", "memory.current"}, std::pair{"memory.limit_in_bytes", "memory.usage_in_bytes"}}) {
    const auto bytes = bytes_in(group / limit);
    if (!bytes || (limits.memory_bytes && *limits.memory_bytes <= *bytes)) continue;
    limits.memory_bytes = bytes;
    limits.memory_in_use = bytes_in(group / use);
  }
}

}  // namespace

GroupLimits read_group_limits(const fs::path& mount, const std::string& membership) {
  GroupLimits limits;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "0::/user.slice", of version 1 "4:cpu,cpuacct:/docker/1a2b"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path below = fs::path(line.substr(second + 1)).relative_path();
    // A container sees its own group as the root, whatever its name outside is.
    const fs::path root = controllers.empty() ? mount : mount / controllers;
    take_limits(root, limits);
    fs::path group = root;
    for (const fs::path& part : below) take_limits(group /= part, limits);
  }
  return limits;
}

GroupLimits group_limits() {
  std::ifstream file("/proc/self/cgroup");
  const std::string membership{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return read_group_limits("/sys/fs/cgroup", membership);
}

std::int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) return std::int64_t{1024} * std::strtoll(line.c_str() + 13, nullptr, 10);
  }
  return 0;
}

std::string write_problem(const fs::path& folder) {
  std::string path = (folder / ".tandem-doctor-XXXXXX").string();
  const int file = ::mkstemp(path.data());
  if (file < 0) return std::strerror(errno);
  const std::string content(4096, 'x');  // a full disk lets empty files be made
  const bool is_written = ::write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  const std::string problem = is_written ? "" : std::strerror(errno);
  ::close(file);
  ::unlink(path.c_str());
  return problem;
}

}  // namespace tandem::apps::doctor
