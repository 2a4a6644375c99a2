// Data sets and tuning files.
#include "checks.h"

#include "apps/arguments/arguments.h"
#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/data/directories.h"
#include "tandem/data/load.h"
#include "tandem/train/tuning_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace tandem::apps::doctor {
namespace {

namespace fs = std::filesystem;

/// The folder that training would take; none where there is none.
std::optional<fs::path> find_data(const fs::path& folder, std::string_view name) {
  std::error_code unknown;
  for (const fs::path& directory : data::default_directories(name)) {
    const fs::path place = directory.is_absolute() ? directory : folder / directory;
    if (fs::is_directory(place, unknown)) return place;
  }
  return std::nullopt;
}

Finding read_data(std::string_view name, const fs::path& directory) {
  const std::string subject = fmt::format("data {}", name);
  try {
    for (const data::Split split : {data::Split::train, data::Split::test})
      data::load_dataset({.name = std::string(name), .directory = directory, .split = split, .limit = 1});
  } catch (const Error& error) {
    return {State::fault, subject, with_flags(error.what(), {"directory", "--data"}),
            fmt::format("tandem data {} --force", name)};
  }
  return {State::ok, subject, directory.string()};
}

/// JSON files of a folder that say of themselves that they hold tuning results, by name.
std::vector<fs::path> tuning_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (entry->path().extension() != ".json" || !entry->is_regular_file(unknown)) continue;
    try {
      if (entry->file_size(unknown) > 0 && train::can_hold_tuning(entry->path().string()))
        files.push_back(entry->path());
    } catch (const Error&) {  // it cannot be read: no file of training's
      continue;
    }
  }
  std::ranges::sort(files);
  return files;
}

/// Why no device of this machine takes what was measured: the last one's reason, which is a GPU where there is one.
std::string tuning_problem(const std::string& file) {
  std::string problem;
  for (const DeviceDescription& description : list_devices()) {  // the CPU first
    problem = train::load_tuning(file, train::tuning_machine(description.device));
    if (problem.empty()) break;
  }
  return problem;
}

}  // namespace

std::vector<Finding> check_data(const fs::path& folder) {
  std::vector<Finding> findings;
  std::string missing;
  for (const std::string_view name : data::dataset_names()) {
    if (name == "synthetic") continue;
    if (const auto directory = find_data(folder, name))
      findings.push_back(read_data(name, *directory));
    else
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
  }
  if (!missing.empty()) {
    const bool has_some = !findings.empty();
    findings.push_back({has_some ? State::ok : State::note, "data", fmt::format("not here: {}", missing),
                        has_some ? "" : "tandem data cifar10 gets one; --dataset synthetic needs none"});
  }
  return findings;
}

std::vector<Finding> check_tuning(const fs::path& folder) {
  std::vector<Finding> findings;
  for (const fs::path& file : tuning_files(folder)) {
    const std::string name = file.filename().string(), problem = tuning_problem(file.string());
    if (problem.empty())
      findings.push_back({State::ok, "tuning", fmt::format("{} is of this machine", name)});
    else
      findings.push_back({State::note, "tuning", problem,
                          "train with --autotune --tuning-file FILE to measure on this machine; name another file to "
                          "keep this one"});
  }
  return findings;
}

}  // namespace tandem::apps::doctor
