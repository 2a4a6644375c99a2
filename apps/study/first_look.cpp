// A run of one step for each combination of data and device, and a look at the options of all others.
#include "apps/study/first_look.h"

#include "apps/study/catalogue.h"
#include "apps/study/memory.h"
#include "apps/study/process.h"
#include "tandem/core/error.h"
#include "tandem/train/report/json_fields.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <string_view>

namespace tandem::study {
namespace {

/// Throws Error, which begins with `what`, where the program ends otherwise than with exit code 0.
void try_program(const std::vector<std::string>& words, const std::string& what, const std::string& folder) {
  constexpr std::chrono::seconds kLimit(120);
  constexpr std::int64_t kMostOutput = 1 << 20;
  const std::string output = (std::filesystem::path(folder) / "first-look.txt").string();
  std::error_code unknown;
  std::filesystem::remove(output, unknown);
  const ProcessResult result = run_process(words, output, kLimit, [] { return false; });
  const std::string text = train::report::read_text(output, kMostOutput), error = last_error(text);
  require(result.exit_code == 0 && result.end == ProcessEnd::exited, "{}: no run can be made: {}", what,
          error.empty() ? last_line(text) : error);
  std::filesystem::remove(output, unknown);
}

/// A run of one step, by what is said of data, device and threads; empty where all runs are optional.
std::vector<std::string> words_of_a_step(const Plan& plan, const Settings& asked) {
  constexpr std::string_view kShared[] = {"dataset", "data", "device", "threads"};
  const auto point = std::ranges::find(plan.points, false, &Point::is_optional);
  if (point == plan.points.end()) return {};
  std::vector<std::string> words{program_file(plan.study.program),
                                 "--no-run-dir",
                                 "--progress=none",
                                 "--epochs=1",
                                 "--limit-train=16",
                                 "--limit-test=16",
                                 "--batch-size=16"};
  for (const std::string_view name : kShared)
    if (const std::string value = value_of(point->settings, std::string(name)); !value.empty())
      words.push_back(fmt::format("--{}={}", name, value));
  if (const std::string model = value_of(asked, "model"); !model.empty()) words.push_back("--model=" + model);
  return words;
}

/// Only reads the options of a point's runs.
std::vector<std::string> words_of_options(const Plan& plan, const Point& point) {
  Point alone = point;  // without mpirun
  std::erase_if(alone.settings, [](const auto& setting) { return setting.first == kRanks || setting.first == kHosts; });
  std::vector<std::string> words = command_of(program_file(plan.study.program), plan.study, alone, 1);
  words.emplace_back("--print-config");
  return words;
}

}  // namespace

void look_first(const std::vector<Plan>& plans, const Settings& asked, const std::string& folder) {
  std::set<std::vector<std::string>> seen;
  const auto try_once = [&](const std::vector<std::string>& words, const std::string& what) {
    if (!words.empty() && seen.insert(words).second) try_program(words, what, folder);
  };
  for (const Plan& plan : plans) {
    if (plan.study.program != "cifar_train") continue;
    try_once(words_of_a_step(plan, asked), plan.study.name);
    for (const Point& point : plan.points)
      if (!point.is_optional)
        try_once(words_of_options(plan, point),
                 point.label.empty() ? plan.study.name : fmt::format("{}: {}", plan.study.name, point.label));
  }
}

}  // namespace tandem::study
