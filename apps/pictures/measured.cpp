#include "apps/pictures/measured.h"

#include "tandem/core/error.h"

#include <charconv>
#include <filesystem>
#include <fstream>

namespace tandem::pictures {

namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words{""};
  for (const char letter : line) {
    if (letter == ',')
      words.emplace_back();
    else
      words.back() += letter;
  }
  return words;
}

}  // namespace

Measured read_measured(const std::string& folder, std::string_view file) {
  const std::string path = (std::filesystem::path(folder) / file).string();
  std::ifstream stream(path);
  require(stream.good(), "{}: cannot open; measured figures are in docs/images/concepts/measured", path);
  Measured measured;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("# ")) {
      measured.notes.push_back(line.substr(2));
      continue;
    }
    measured.rows.push_back(words_of(line));
    require(measured.rows.back().size() == measured.rows.front().size(), "{}: '{}' has {} words, the rows before {}",
            path, line, measured.rows.back().size(), measured.rows.front().size());
  }
  require(!measured.notes.empty() && !measured.rows.empty(), "{}: has no line that begins with '# ', or no row", path);
  return measured;
}

double number_of(const std::string& word) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  require(error == std::errc{} && end == word.data() + word.size(), "measured figures: '{}' is no number", word);
  return value;
}

}  // namespace tandem::pictures
