// environment.json says how a run ended, log.jsonl what it measured.
#include "apps/study/memory.h"

#include "apps/study/bench_run.h"
#include "tandem/core/error.h"
#include "tandem/train/report/json_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>
#include <utility>
#include <vector>

namespace tandem::study {
namespace {

namespace fs = std::filesystem;
using train::report::RunState;

constexpr std::int64_t kMostOutput = std::int64_t{1} << 26;

std::string state_of(const fs::path& folder) {
  const fs::path file = folder / "environment.json";
  std::error_code unknown;
  if (!fs::exists(file, unknown)) return "";
  try {
    return train::report::text_field(train::report::read_json(file.string(), 1 << 24), "state");
  } catch (const Error&) {
    return "";  // it is being written, or was left half
  }
}

std::string output_of(const fs::path& folder) {
  const fs::path file = folder / kOutputFile;
  std::error_code unknown;
  return fs::exists(file, unknown) ? train::report::read_text(file.string(), kMostOutput) : "";
}

/// Of a bench's run.
KeptRun look_at_bench(const fs::path& folder, const Bench& bench) {
  KeptRun kept{RunOutcome::interrupted, folder.string(), "it was interrupted before its end"};
  std::error_code unknown;
  const fs::path file = folder / kExitFile;
  if (!fs::exists(file, unknown)) return kept;
  const std::string output = output_of(folder), last = last_line(output);
  kept.outcome = RunOutcome::failed;
  kept.reason = last_error(output);
  if (kept.reason.empty())
    kept.reason = last.empty() ? "it told no figures" : fmt::format("it told no figures, behind '{}'", last);
  try {
    kept.figures = bench.figures(folder.string(), output);
  } catch (const Error& error) {
    kept.reason = error.what();
    return kept;
  }
  if (train::report::read_text(file.string(), kMostOutput) == "0" && !kept.figures.empty()) {
    kept.outcome = RunOutcome::finished;
    kept.reason.clear();
  }
  return kept;
}

/// What is known of a folder that is there.
KeptRun look_at(const fs::path& folder, const Study& study) {
  if (const Bench* const bench = find_bench(study.program)) return look_at_bench(folder, *bench);
  KeptRun kept{RunOutcome::interrupted, folder.string(), "it was interrupted before its end"};
  std::error_code unknown;
  // Without that file the study was stopped, or killed, under way.
  const bool ended_itself = fs::exists(folder / kExitFile, unknown);
  const std::string state = state_of(folder), error = last_error(output_of(folder));
  if (train::report::reason_of_no_run(folder.string()).empty()) kept.data = train::report::read_run(folder.string());
  const bool has_diverged = kept.data && kept.data->state == RunState::diverged && state == "failed";
  const bool has_finished = kept.data && kept.data->state == RunState::finished && state == "finished";
  if (has_diverged) {
    kept.outcome = RunOutcome::diverged;
    kept.reason = train::report::reason_of_divergence(*kept.data);
    kept.reason.erase(kept.reason.find_last_not_of('.') + 1);
  } else if (has_finished) {
    kept.outcome = RunOutcome::finished;
    kept.reason.clear();
  } else if (state == "failed" || (!error.empty() && (state != "stopped" || ended_itself))) {
    kept.outcome = RunOutcome::failed;
    kept.reason = error.empty() ? "it failed" : error;
  }
  return kept;
}

}  // namespace

bool is_done(RunOutcome outcome) { return outcome == RunOutcome::finished || outcome == RunOutcome::diverged; }

std::string last_error(const std::string& output) {
  constexpr std::string_view kError = "error: ";
  std::istringstream lines(output);
  std::string found;
  for (std::string line; std::getline(lines, line);)
    if (const std::size_t at = line.find(kError); at != line.npos) found = line.substr(at + kError.size());
  return found;
}

std::string last_line(const std::string& output) {
  std::istringstream lines(output);
  std::string found;
  for (std::string line; std::getline(lines, line);)
    if (std::ranges::any_of(line, [](unsigned char c) { return std::isalpha(c) != 0; })) found = line;
  return found;
}

KeptRun find_run(const std::string& runs, const Plan& plan, const PlannedRun& run) {
  const fs::path own = fs::path(runs) / run.folder;
  std::error_code unknown;
  KeptRun kept{RunOutcome::missing, own.string(), "it was not begun"};
  if (fs::is_directory(own, unknown)) kept = look_at(own, plan.study);
  if (is_done(kept.outcome)) return kept;
  const std::string end = "-" + folder_end(plan.points[run.point], run.seed);
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(runs, unknown))
    if (entry.path() != own && entry.path().filename().string().ends_with(end)) others.push_back(entry.path());
  std::ranges::sort(others);
  for (const fs::path& other : others) {
    KeptRun same = look_at(other, plan.study);
    if (is_done(same.outcome)) return same;
    if (same.outcome == RunOutcome::failed && kept.outcome != RunOutcome::failed) kept = std::move(same);
  }
  return kept;
}

}  // namespace tandem::study
