// Finding the folder of a data set.
#include "tandem/data/directories.h"

#include "tandem/core/error.h"

namespace tandem::data {

namespace fs = std::filesystem;

namespace {

std::string advice(std::string_view name, std::string_view force) {
  return fmt::format("run tandem data {}{}, or name the folder that holds {} by option directory", name, force, name);
}

}  // namespace

std::string get_data_advice(std::string_view name) { return advice(name, ""); }

std::string get_data_again_advice(std::string_view name) { return advice(name, " --force"); }

std::vector<fs::path> default_directories(std::string_view name) {
  std::vector<fs::path> result{fs::path("datasets") / name};
  if (name == "fashion-mnist") result.emplace_back("/usr/share/datasets/fashion-mnist");
  return result;
}

fs::path folder_with(const fs::path& directory, const std::vector<std::string>& subfolders,
                     const std::vector<std::string>& any_of, std::string_view name) {
  std::error_code error;
  require(fs::exists(directory, error), "{}: no such data directory; {}", directory.string(), get_data_advice(name));
  require(fs::is_directory(directory, error), "{}: is a file, expected a data directory; {}", directory.string(),
          get_data_advice(name));
  for (const auto& subfolder : subfolders) {
    const fs::path folder = subfolder.empty() ? directory : directory / subfolder;
    for (const auto& file : any_of)
      if (fs::exists(folder / file, error)) return folder;
  }
  std::string places;
  for (const auto& subfolder : subfolders)
    if (!subfolder.empty()) places += (places.empty() ? " (nor in " : ", ") + subfolder;
  fail("{}: no {} here{}; {}", directory.string(), any_of.front(), places.empty() ? "" : places + ")",
       get_data_advice(name));
}

}  // namespace tandem::data
