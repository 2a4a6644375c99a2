// Process facts from /proc, the C library and the compiler.
#include "tandem/train/process_info.h"

#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/comm/launch/network_interface.h"
#include "tandem/config.h"
#include "tandem/core/device.h"
#include "tandem/core/has_cuda.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/implementations.h"
#include "tandem/kernels/instruction_set.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>

namespace tandem::train {

std::int64_t peak_memory_bytes() {
  // VmHWM first: ru_maxrss also counts what the parent had in memory when it forked.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::int64_t{1024} * std::strtoll(line.c_str() + 6, nullptr, 10);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{1024} * usage.ru_maxrss;
}

TensorMemory peak_tensor_memory(Device device) {
  const MemoryStats stats = memory_stats(device);
  TensorMemory result;
  for (int i = 0; i < kMemoryTagCount; ++i) {
    const auto tag = static_cast<MemoryTag>(i);
    if (stats.peak_of(tag) > 0) result.emplace_back(name_of(tag), stats.peak_of(tag));
  }
  return result;
}

std::string host_name() { return comm::host_name(); }

std::string utc_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts));
}

Versions build_versions() {
  const auto yes_no = [](bool present) { return std::string(present ? "yes" : "no"); };
  return {{"tandem", TANDEM_VERSION},
          {"compiler", __VERSION__},
          {"vectors", std::string(kernels::instruction_set())},
          {"onednn", yes_no(kernels::missing_onednn().empty())},
          {"mpi", yes_no(comm::missing_mpi().empty())},
          {"cuda", yes_no(kHasCuda)}};
}

}  // namespace tandem::train
