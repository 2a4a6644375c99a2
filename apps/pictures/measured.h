// Measured figures, kept as text beside the pictures: lines that begin with "#" tell when, where and how; each other
// line is a row of words between commas.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem::pictures {

struct Measured {
  std::vector<std::string> notes;  ///< without "#"
  std::vector<std::vector<std::string>> rows;
};

/// Throws Error where there is no such file, where it has no notes, and where a row has fewer words than the first.
Measured read_measured(const std::string& folder, std::string_view file);

/// Throws Error for what is no number.
double number_of(const std::string& word);

}  // namespace tandem::pictures
