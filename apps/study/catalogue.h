// Which studies there are.
#pragma once

#include "apps/study/study.h"

#include <string>
#include <vector>

namespace tandem::study {

/// The file of a program of this build, "cifar_train": beside this one, else on the PATH. Throws Error.
std::string program_file(const std::string& program);

/// The options that a program prints by --help, without their dashes; asked once for each. Throws Error where a study
/// cannot use the program.
std::vector<std::string> options_of(const std::string& program);

/// All studies that come with the program, by number, then by name. Throws Error where it has none.
std::vector<Study> all_studies();

/// By number, which some share, by name, or as a file that ends in .toml. Throws Error, suggesting the nearest.
std::vector<Study> find_studies(const std::string& name);

}  // namespace tandem::study
