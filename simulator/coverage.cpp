// The list of kernels that ran, appended to a file when the program ends.
#include "tandem/simulator/coverage.h"

#include "tandem/simulator/settings.h"
#include "tandem/simulator/site.h"

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace tandem::simulator {

namespace {

struct Ran {
  std::map<const void*, std::set<std::pair<unsigned, std::size_t>>> kernels;

  ~Ran() {
    const std::string& file = settings().coverage_file;
    if (file.empty() || kernels.empty()) return;
    std::string lines;
    for (const auto& [kernel, blocks] : kernels) {
      const std::string name = site_of_function(kernel).file + "\t" + function_name(kernel);
      for (const auto& [threads, dynamic_shared_bytes] : blocks)
        lines += fmt::format("{}\t{}\t{}\n", name, threads, dynamic_shared_bytes);
    }
    // One write in append mode, past the buffer that would cut it in two: programs that end together do not mix their
    // lines.
    if (std::FILE* const out = std::fopen(file.c_str(), "a")) {
      std::setvbuf(out, nullptr, _IONBF, 0);
      std::fwrite(lines.data(), 1, lines.size(), out);
      std::fclose(out);
    } else {
      std::fprintf(stderr, "simulator: cannot append to %s\n", file.c_str());
    }
  }
};

}  // namespace

void record_launch(const void* kernel, unsigned threads, std::size_t dynamic_shared_bytes) {
  settings();  // lives longer than what is made after it
  static Ran ran;
  ran.kernels[kernel].emplace(threads, dynamic_shared_bytes);
}

}  // namespace tandem::simulator
