// What the command lines of all programs have in common: strict values, and one line for what is wrong.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace tandem::apps {

/// Fills in what `app` binds. Of an option with one value that is given twice, the last one counts. Returns false where
/// help was asked for, which is then printed. Throws Error with one line that names the option, and the nearest one
/// where it is unknown.
bool parse_arguments(CLI::App& app, int argc, const char* const* argv);

/// What a parser says of an option without its value and the like, in one line.
[[noreturn]] void fail_parsing(const CLI::ParseError& error);

/// Throws Error for text with line ends or other control characters, which no error could name in one line.
void require_printable(std::string_view text);
void require_printable(int argc, const char* const* argv);

/// Throws Error for what is no option of the program: "unknown option --layer: did you mean --layers?". `known`: with
/// their dashes.
[[noreturn]] void fail_unknown(std::span<const std::string> arguments, std::span<const std::string> known);

/// Throws Error where a flag is given another value than true or false.
void require_flag_values(const CLI::App& app);

/// Throws Error for the empty path of a file or folder: a script's variable that was never set, most likely.
void require_path(std::string_view option, std::string_view path);

/// Lets an option take paths that are not empty only.
void expect_path(CLI::Option& option);

/// Lets an option take decimal whole numbers of these limits only, neither 0x10 nor 1e3.
void expect_whole_number(CLI::Option& option, std::int64_t least, std::int64_t most);

/// Lets an option take finite numbers of at least 0 only.
void expect_finite_number(CLI::Option& option);

}  // namespace tandem::apps
