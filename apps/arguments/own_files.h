// Files that come with the programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem::apps {

/// The folder `name` of such files: beside the program as it was built, or ../share/tandem as it was installed. Throws
/// Error where there is none.
std::string own_folder(std::string_view name);

/// The files of that folder that end in `extension`, without it, in alphabetical order; none where there is no folder
/// that can be read.
std::vector<std::string> own_files(std::string_view folder, std::string_view extension);

}  // namespace tandem::apps
