// Files that come with the programs.
#include "apps/arguments/own_files.h"

#include "tandem/core/error.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>

namespace tandem::apps {

namespace fs = std::filesystem;

namespace {

/// Where they may be: as built, and as installed.
std::array<fs::path, 2> own_folders(std::string_view name) {
  std::error_code unknown;
  const fs::path here = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  return {here / name, here.parent_path() / "share" / "tandem" / name};
}

std::optional<fs::path> find_own_folder(std::string_view name) {
  std::error_code unknown;
  for (const fs::path& folder : own_folders(name))
    if (fs::is_directory(folder, unknown)) return folder;
  return std::nullopt;
}

}  // namespace

std::string own_folder(std::string_view name) {
  if (const auto folder = find_own_folder(name)) return folder->string();
  const auto [built, installed] = own_folders(name);
  fail("there are no {} in {} or {}: was Tandem installed whole?", name, built.string(), installed.string());
}

std::vector<std::string> own_files(std::string_view folder, std::string_view extension) {
  std::vector<std::string> names;
  const auto found = find_own_folder(folder);
  if (!found) return names;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(*found, unreadable))
    if (entry.path().extension() == extension) names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace tandem::apps
