// The list of kernels that ran, appended to a file when the program ends.
#include "simulator/coverage.h"

#include "simulator/settings.h"
#include "simulator/site.h"

#include <cstdio>
#include <set>
#include <string>

namespace tandem::simulator {

namespace {

struct Ran {
  std::set<const void*> kernels;

  ~Ran() {
    const std::string& file = settings().coverage_file;
    if (file.empty() || kernels.empty()) return;
    std::string names;
    for (const void* const kernel : kernels)
      names += site_of_function(kernel).file + "\t" + function_name(kernel) + "\n";
    // One write in append mode: programs that end together do not mix their lines.
    if (std::FILE* const out = std::fopen(file.c_str(), "a")) {
      std::fwrite(names.data(), 1, names.size(), out);
      std::fclose(out);
    } else {
      std::fprintf(stderr, "simulator: cannot append to %s\n", file.c_str());
    }
  }
};

}  // namespace

void record_kernel(const void* kernel) {
  settings();  // lives longer than what is made after it
  static Ran ran;
  ran.kernels.insert(kernel);
}

}  // namespace tandem::simulator
