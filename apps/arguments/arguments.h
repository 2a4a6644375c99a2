// What the command lines of all programs have in common: strict values, and one line for what is wrong.
#pragma once

#include "tandem/core/error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tandem::apps {

/// Fills in what `app` binds. Of an option with one value that is given twice, the last one counts, unless it has a
/// policy of its own. Returns false where help was asked for. Throws Error with one line that names the option, and the
/// nearest one where it is unknown.
bool read_arguments(CLI::App& app, int argc, const char* const* argv);

/// The same, and prints help_page().
bool parse_arguments(CLI::App& app, int argc, const char* const* argv);

/// The options of `app` in lines of at most `columns`, each with its default and what it takes.
std::string help_page(const CLI::App& app, const std::string& program, int columns);

/// `text` with line ends and other control characters as "\x0a", so that an error can name it in one line.
std::string printable(std::string_view text);

/// Throws Error for text with line ends or other control characters.
void require_printable(std::string_view text);

/// An error of the libraries in this program's words: "option conv_impl" becomes "--conv-impl". `only`: the one option
/// that it may name, and its flag; for errors that hold text of the user's, too.
std::string with_flags(std::string_view text, std::pair<std::string_view, std::string_view> only = {});

/// Calls `body`, and gives its errors in this program's words.
template <typename Body>
auto naming_flags(const Body& body, std::pair<std::string_view, std::string_view> only = {}) {
  try {
    return body();
  } catch (const Error& error) {
    fail("{}", with_flags(error.what(), only));
  }
}

/// Throws Error for the empty path of a file or folder: a script's variable that was never set, most likely.
void require_path(std::string_view option, std::string_view path);

/// Lets an option take paths that are not empty only.
void expect_path(CLI::Option& option);

/// Lets an option take decimal whole numbers of these limits only, neither 0x10 nor 1e3.
void expect_whole_number(CLI::Option& option, std::int64_t least, std::int64_t most);

/// Lets an option take finite numbers of at least 0 only.
void expect_finite_number(CLI::Option& option);

}  // namespace tandem::apps
