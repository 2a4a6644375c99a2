// Calls that must be refused, and what users read of it.
#pragma once

#include "tests/support/error_of.h"
#include "tests/support/recorded_lines.h"

#include <fmt/format.h>

#include <functional>

namespace tandem::test {

struct BadCall {
  std::string what;  ///< the class or function, and what is wrong
  std::function<void()> call;
};

/// `text` with each path of `folder` as "FOLDER".
inline std::string without_folder(std::string text, const std::string& folder) {
  for (std::size_t at = 0; !folder.empty() && (at = text.find(folder, at)) != std::string::npos;)
    text.replace(at, folder.size(), "FOLDER");
  return text;
}

/// Each call must throw an Error, the text of which is a line of tests/errors/<subject>.txt.
inline void check_errors(const std::string& subject, const std::vector<BadCall>& calls,
                         const std::string& folder = {}) {
  std::vector<std::string> lines;
  for (const BadCall& bad : calls) {
    const std::string text = error_of(bad.call);
    INFO(bad.what);
    CHECK(text != "no error");
    lines.push_back(fmt::format("{}: {}", bad.what, without_folder(text, folder)));
  }
  check_recorded("tests/errors/" + subject + ".txt", lines);
}

}  // namespace tandem::test
