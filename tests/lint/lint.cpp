// What the lint counted, per kernel.
#include "tests/lint/lint.h"

#include "tandem/simulator/settings.h"

#include <tuple>

namespace tandem::test {

namespace {

/// "tandem::(anonymous namespace)::map<Sum>" becomes "map".
std::string short_name(const std::string& symbol) {
  std::string plain;
  int depth = 0;
  for (const char character : symbol) {
    depth += character == '<' ? 1 : 0;
    if (depth == 0) plain += character;
    depth -= character == '>' ? 1 : 0;
  }
  const std::size_t colon = plain.rfind(':');
  return colon == std::string::npos ? plain : plain.substr(colon + 1);
}

/// By kernel, line, whether memory is shared, and whether it is written; places within a line are added up.
using Lines = std::map<std::tuple<std::string, std::string, bool, bool>, Traffic>;

/// "kernels/elementwise/add.cu:12" becomes "add.cu".
std::string file_of(const std::string& site) {
  const std::string path = site.substr(0, site.rfind(':'));
  return path.substr(path.rfind('/') + 1);
}

Lines lines_so_far() {
  Lines lines;
  for (const simulator::LintEntry& entry : simulator::lint_entries())
    lines[{entry.kernel, entry.site.text(), entry.shared, entry.writes}] += {entry.requests, entry.moved, entry.ideal};
  return lines;
}

}  // namespace

TrafficOfKernels traffic_of(const std::function<void()>& work) {
  const Lines before = lines_so_far();  // counts go on over all cases, for the table that is written at exit
  simulator::settings().lint = true;
  work();
  simulator::settings().lint = false;
  TrafficOfKernels result;
  for (auto [key, traffic] : lines_so_far()) {
    if (const auto found = before.find(key); found != before.end()) traffic -= found->second;
    if (traffic.requests == 0) continue;
    const auto& [kernel, site, shared, writes] = key;
    KernelTraffic& of_kernel = result[short_name(kernel)];
    (shared ? of_kernel.shared : of_kernel.global) += traffic;
    of_kernel.lines.push_back({site + (shared ? " (shared)" : " (global)"), traffic});
    if (!shared && !writes) of_kernel.sectors_read[file_of(site)] += traffic.moved;
  }
  return result;
}

std::vector<LintCases>& RegisterLint::all() {
  static std::vector<LintCases> cases;
  return cases;
}

}  // namespace tandem::test
