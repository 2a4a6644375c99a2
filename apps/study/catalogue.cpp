// Files beside the program, and on the command line.
#include "apps/study/catalogue.h"

#include "apps/arguments/own_files.h"
#include "apps/study/bench_run.h"
#include "apps/study/study_file.h"
#include "apps/tandem/commands.h"
#include "tandem/core/error.h"
#include "tandem/core/suggest.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

namespace tandem::study {

std::string program_file(const std::string& program) { return apps::find_program(apps::find_command(program)); }

std::vector<std::string> options_of(const std::string& program) {
  static std::map<std::string, std::vector<std::string>> known;
  const auto [place, is_new] = known.try_emplace(program);
  if (is_new) {
    std::vector<std::string_view> programs{"cifar_train"};
    for (const Bench& bench : benches()) programs.push_back(bench.program);
    require(std::ranges::find(programs, program) != programs.end(), "{}", unknown_name("program", program, programs));
    for (const std::string& option : apps::options_in(apps::help_of(apps::find_command(program))))
      place->second.push_back(option.substr(2));
  }
  return place->second;
}

std::vector<Study> all_studies() {
  std::vector<Study> studies;
  const std::filesystem::path folder = apps::own_folder("studies");
  for (const std::string& name : apps::own_files("studies", ".toml"))
    studies.push_back(read_study((folder / (name + ".toml")).string(), options_of));
  std::ranges::sort(studies, {}, [](const Study& study) {
    constexpr int kBehindAll = 100;
    return std::pair(study.number > 0 ? study.number : kBehindAll, study.name);
  });
  return studies;
}

std::vector<Study> find_studies(const std::string& name) {
  if (name.ends_with(".toml")) return {read_study(name, options_of)};
  std::vector<Study> found;
  std::vector<std::string> names;
  for (Study& study : all_studies()) {
    names.push_back(study.name);
    const bool is_number = study.number > 0 && name == std::to_string(study.number);
    if (name == study.name || is_number) found.push_back(std::move(study));
  }
  if (!found.empty()) return found;
  fail("{}; a study of your own is named by its file, which ends in .toml", unknown_name("study", name, names));
}

}  // namespace tandem::study
