// Clocks by /proc/cpuinfo, and by nvidia-smi.
#include "apps/conv_bench/clocks.h"

#include "tandem/core/device_query.h"

#include <fmt/core.h>

#include <cstdio>
#include <fstream>
#include <memory>

namespace tandem::conv_bench {

namespace {

std::string cpu_clocks() {
  std::ifstream file("/proc/cpuinfo");
  double sum = 0.0;
  int cores = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("cpu MHz")) continue;
    sum += std::strtod(line.c_str() + line.find(':') + 1, nullptr);
    ++cores;
  }
  return cores == 0 ? "unknown" : fmt::format("{:.0f} MHz", sum / cores);
}

/// The first line that a command prints.
std::string first_line_of(const std::string& command) {
  // NOLINTNEXTLINE(bugprone-command-processor): the commands are those of this file
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string line;
  if (!pipe) return line;
  for (int letter = std::fgetc(pipe.get()); letter != EOF && letter != '\n'; letter = std::fgetc(pipe.get()))
    line += static_cast<char>(letter);
  return line;
}

}  // namespace

std::string clocks_of(Device device) {
  if (device.type == DeviceType::cpu) return cpu_clocks();
  if (cuda_is_simulated()) return "unknown";
  for (const DeviceDescription& known : list_devices()) {
    if (known.device != device) continue;
    const std::string line = first_line_of(
        "nvidia-smi --id=" + known.uuid +
        " --query-gpu=clocks.sm,clocks.max.sm,clocks.mem,power.draw,temperature.gpu --format=csv,noheader 2>/dev/null");
    if (!line.empty()) return line;
  }
  return "unknown";
}

}  // namespace tandem::conv_bench
