// The simulator's lint as a counter.
#include "apps/measure/kernel_counts.h"

#include "tandem/core/error.h"

#include <algorithm>
#include <map>

#if TANDEM_SIMULATOR_COUNTS
#include "tandem/simulator/lint.h"
#include "tandem/simulator/settings.h"
#endif

namespace tandem {

std::string counting_obstacle(Device device) {
#if TANDEM_SIMULATOR_COUNTS
  return device.type == DeviceType::cuda ? "" : "only simulated GPUs are counted on; add --device cuda";
#else
  static_cast<void>(device);
  return "this build counts nothing; the preset simulated does";
#endif
}

#if TANDEM_SIMULATOR_COUNTS
namespace {

std::string without_namespaces(std::string name) {
  for (const std::string space :
       {"tandem::", "kernels::", "cuda::", "implicit_gemm::", "few_channels::", "stationary::", "device::"}) {
    for (std::size_t at = name.find(space); at != std::string::npos; at = name.find(space))
      name.erase(at, space.size());
  }
  return name;
}

}  // namespace

std::vector<KernelCounts> count_kernels(const std::function<void()>& work) {
  constexpr std::uint64_t kSector = 32;
  simulator::reset_lint();
  simulator::settings().lint = true;
  work();
  simulator::settings().lint = false;
  std::map<std::string, KernelCounts> by_name;
  const auto counts_of = [&](const std::string& kernel) -> KernelCounts& {
    return by_name[without_namespaces(kernel)];
  };
  for (const auto& [kernel, launches] : simulator::lint_launches()) counts_of(kernel).launches += launches;
  for (const simulator::LintEntry& entry : simulator::lint_entries()) {
    if (entry.shared) continue;
    KernelCounts& counts = counts_of(entry.kernel);
    (entry.writes ? counts.bytes_written : counts.bytes_read) += kSector * entry.moved;
  }
  std::vector<KernelCounts> result;
  for (auto& [name, counts] : by_name) {
    counts.kernel = name;
    result.push_back(counts);
  }
  std::stable_sort(result.begin(), result.end(), [](const KernelCounts& a, const KernelCounts& b) {
    return a.bytes_read + a.bytes_written > b.bytes_read + b.bytes_written;
  });
  return result;
}
#else
std::vector<KernelCounts> count_kernels(const std::function<void()>&) { fail("{}", counting_obstacle({})); }
#endif

}  // namespace tandem
