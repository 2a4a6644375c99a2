// Where data sets are looked for.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::data {

/// "run tandem data NAME, or name the folder that holds NAME by option directory", for where there is no data.
std::string get_data_advice(std::string_view name);

/// The same with --force, which replaces files that are there and damaged.
std::string get_data_again_advice(std::string_view name);

/// Where `name` is looked for when no folder is given: datasets/NAME in the working directory, then where the system's
/// packages put it (Debian's dataset-fashion-mnist).
std::vector<std::filesystem::path> default_directories(std::string_view name);

/// The first of directory/subfolder that holds one of the file names `any_of` (whatever kind of file it is).
/// Throws Error if `directory` is missing or not a directory, or if there is none; advice on how to get the data set
/// `name` ends the message.
std::filesystem::path folder_with(const std::filesystem::path& directory, const std::vector<std::string>& subfolders,
                                  const std::vector<std::string>& any_of, std::string_view name);

}  // namespace tandem::data
