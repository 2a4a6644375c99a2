// Every kernel of the tree under the lint, within bounds: sectors of 32 bytes per request to global memory, and
// wavefronts per request to shared memory, over the fewest that the same bytes could take.
#include "tests/lint/lint.h"

#include "tandem/kernels/elementwise/add.h"
#include "tandem/simulator/settings.h"

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr double kMostSectors = 1.25, kMostWavefronts = 1.1;

/// Where a kernel may take more, and why. `work` is a regular expression for names of cases.
struct Exception {
  std::string kernel, work;
  double sectors, wavefronts;
  std::string reason;
};

const std::vector<Exception> kExceptions{
    {"transpose_words", "transpose of u8", 1.5, kMostWavefronts, "32 bytes of a row of 130 straddle two sectors"},
    {"copy_words|transpose_words", "u8.*a crop", 1.6, kMostWavefronts, "32 bytes of a row that begins inside a sector"},
    {"(chunk|normalise|propagate|join_and|finish_and)_.*", "batch_norm.* f16\\[2, 3,", 1.5, kMostWavefronts,
     "a block takes whole rows of 3 channels, which end inside sectors: 64 bytes of a warp are in 3 of them"},
    {"augment", "\\[4, 1, 28, 28\\] to f16", 1.3, kMostWavefronts, "28 bytes are a row of the stored image"},
    {"fold_reflections|move_pixels", "f16\\[2, 3,", 1.4, kMostWavefronts,
     "a warp moves 64 bytes, 10 or 11 pixels, from places that are no multiple of a sector"},
    {"count_adam_steps", "step of adam", 3.1, kMostWavefronts,
     "a pointer out of each entry of the table, and the count behind it"},
    {"nll_losses", "nll_loss (of|with)", 8.1, kMostWavefronts, "one number of each row"},
    {"best_of_row", "to 1025$", 1.9, kMostWavefronts,
     "keys of more than 1024 elements are sorted in global memory: a warp writes only those that change places"},
    {"score_rows|key_rows", "f16\\[16, 15?00\\]", 1.4, kMostWavefronts,
     "rows of 100 and 1500 halves begin inside sectors: the 64 bytes of a warp are in 3 of them"},
    {"grouped_tiles", "step of muon on f16", 1.9, kMostWavefronts,
     "a filter of 27 columns is no fours: the products of a launch load element by element, eight of each row"},
    {"softmax_rows|key_rows", "f16\\[16, 10\\]", 1.35, kMostWavefronts, "20 bytes of a row of 10 straddle two sectors"},
    {"tile_product", "f16\\[2, 3,|f16.* to 10+$", 2.85, kMostWavefronts,
     "3 channels and 10 columns are no fours: elements are loaded one by one, eight (half a sector) of each row"},
    {"tile_product", "f32\\[2, 3,|f32.* to 10$", 1.95, kMostWavefronts,
     "the same: eight of each row, which begin inside sectors"},
};

/// The bounds for a kernel in a case; remembers which exception gave them.
Exception bounds_of(const std::string& kernel, const std::string& work, std::set<const Exception*>& used) {
  for (const Exception& exception : kExceptions) {
    if (!std::regex_match(kernel, std::regex(exception.kernel)) || !std::regex_search(work, std::regex(exception.work)))
      continue;
    used.insert(&exception);
    return exception;
  }
  return {kernel, work, kMostSectors, kMostWavefronts, ""};
}

/// The lines of a kernel that take more than they need, worst first.
std::string culprits(const KernelTraffic& kernel) {
  auto lines = kernel.lines;
  std::sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
    return a.second.moved - a.second.ideal > b.second.moved - b.second.ideal;
  });
  std::string text;
  for (const auto& [line, traffic] : lines) {
    if (traffic.moved != traffic.ideal) text += fmt::format("\n  {}: {} for {}", line, traffic.moved, traffic.ideal);
  }
  return text;
}

/// Names of the __global__ functions in the sources of these libraries.
std::set<std::string> kernels_of_tree() {
  const std::regex comment("//[^\n]*"), global("__global__"),
      kernel(R"(__global__[^;{]*?\bvoid\s+(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\s*\()");
  std::set<std::string> names;
  for (const char* const library : {"core", "kernels"}) {
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(TANDEM_SOURCE_DIR) / library)) {
      if (!file.path().extension().string().starts_with(".cu")) continue;
      std::stringstream text;
      text << std::ifstream(file.path()).rdbuf();
      const std::string code = std::regex_replace(text.str(), comment, "");
      const std::sregex_iterator found(code.begin(), code.end(), kernel), end;
      INFO(file.path() << " has a __global__ function that is not understood");
      CHECK(std::distance(found, end) == std::distance(std::sregex_iterator(code.begin(), code.end(), global), end));
      for (auto match = found; match != end; ++match) names.insert((*match)[1]);
    }
  }
  return names;
}

}  // namespace

// Each section runs the test case once more: what is asked of all of them together comes behind the last.
TEST_CASE("kernels move whole sectors and keep out of each other's banks", "[lint]") {
  simulator::settings().lint = false;  // while inputs are made
  static std::size_t sections_run = 0;
  static std::set<std::string> seen;
  static std::set<const Exception*> used;
  for (const LintCases& cases : RegisterLint::all()) {
    DYNAMIC_SECTION(cases.name) {
      ++sections_run;
      for (const LintCase& c : cases.make()) {
        for (const auto& [name, traffic] : traffic_of(c.work)) {
          seen.insert(name);
          const Exception most = bounds_of(name, c.name, used);
          INFO(name << " in " << c.name << culprits(traffic));
          CHECK(traffic.global.ratio() <= most.sectors);
          CHECK(traffic.shared.ratio() <= most.wavefronts);
        }
      }
    }
  }
  if (sections_run < RegisterLint::all().size()) return;
  for (const std::string& kernel : kernels_of_tree()) {
    INFO(kernel << " ran in no case of tests/lint: add one");
    CHECK(seen.contains(kernel));
  }
  for (const Exception& exception : kExceptions) {
    INFO("the exception for " << exception.kernel << " in '" << exception.work << "' is not used: remove it");
    CHECK(used.contains(&exception));
  }
}

TEST_CASE("loads are told from stores, and launches are counted", "[lint]") {
  simulator::settings().lint = false;
  const Tensor a = ones({1024}), b = ones({1024}), sum = ones({1024});
  const auto sectors = [](bool writes) {
    std::uint64_t moved = 0;
    for (const simulator::LintEntry& entry : simulator::lint_entries())
      if (!entry.shared && entry.writes == writes) moved += entry.moved;
    return moved;
  };
  const auto launches_of_all = [] {
    std::uint64_t launches = 0;
    for (const auto& [kernel, count] : simulator::lint_launches()) launches += count;
    return launches;
  };
  const std::uint64_t loads = sectors(false), stores = sectors(true), launches = launches_of_all();
  traffic_of([&] {
    kernels::add(a, b, Out(sum));
    kernels::add(a, sum, Out(sum));
  });
  CHECK(launches_of_all() - launches == 2);
  CHECK(sectors(false) - loads == 2 * 2 * 1024 * 4 / 32);
  CHECK(sectors(true) - stores == 2 * 1024 * 4 / 32);
}
