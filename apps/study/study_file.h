// Studies as TOML files.
#pragma once

#include "apps/study/study.h"

#include <functional>
#include <string>
#include <vector>

namespace tandem::study {

/// The options that a program takes, without their dashes: what names in a study file are held against.
using OptionsOf = std::function<std::vector<std::string>(const std::string& program)>;

/// Reads a study's file (docs/study.md says what is in it). Throws Error, "FILE:LINE: what is wrong; what to do".
Study parse_study(const std::string& text, const std::string& file, const OptionsOf& options_of);
Study read_study(const std::string& path, const OptionsOf& options_of);

}  // namespace tandem::study
