// Words of commands that are printed for people to paste into a shell.
// Example:
//     const std::string command = "--run-dir " + shell_word("two ranks");  // "--run-dir 'two ranks'"
#pragma once

#include <string>
#include <string_view>

namespace tandem::train {

/// The word as a POSIX shell reads it back: in single quotes unless it is plain.
std::string shell_word(std::string_view word);

/// An option with its value: "--run-dir 'two ranks'", and "--run-dir=-x" where the value looks like an option.
std::string shell_option(std::string_view name, std::string_view value);

}  // namespace tandem::train
