// A run of one step for each combination of data and device.
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

void look_first(const std::vector<Plan>& plans, const Settings& asked, const std::string& folder) {
  constexpr std::string_view kShared[] = {"dataset", "data", "device", "threads"};
  constexpr std::chrono::seconds kLimit(120);
  constexpr std::int64_t kMostOutput = 1 << 20;
  std::set<std::vector<std::string>> seen;
  for (const Plan& plan : plans) {
    const auto point = std::ranges::find(plan.points, false, &Point::is_optional);
    if (plan.study.program != "cifar_train" || point == plan.points.end()) continue;
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
    if (!seen.insert(words).second) continue;
    const std::string output = (std::filesystem::path(folder) / "first-look.txt").string();
    std::error_code unknown;
    std::filesystem::remove(output, unknown);
    const ProcessResult result = run_process(words, output, kLimit, [] { return false; });
    const std::string text = train::report::read_text(output, kMostOutput), error = last_error(text);
    require(result.exit_code == 0 && result.end == ProcessEnd::exited, "{}: no run can be made: {}", plan.study.name,
            error.empty() ? last_line(text) : error);
    std::filesystem::remove(output, unknown);
  }
}

}  // namespace tandem::study
