// What the main functions of all programs have in common.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tandem::comm {
class MpiEnvironment;
}

namespace tandem::apps {

/// What a program is called by its user: its name without a folder, or "tandem train" where `tandem` has become it,
/// which gives that as the first word of the command line.
std::string program_name(const char* const* argv);

/// The command line by words, "tandem" and "train" being two.
std::vector<std::string> command_words(int argc, const char* const* argv);

/// Gives closed standard streams something to be, so that no file that is opened later takes their place and what is
/// printed. Before anything is opened.
void hold_standard_streams();

/// The exit code of a program that is done: `code`, or 1 where standard output could not be written, which is told.
int checked_output(int code);

/// Returns body()'s exit code, through checked_output. Exceptions are told in one line, with exit code 2. Like notices,
/// they are broken to a terminal's width (train/stderr_line.h).
int run_program(const std::function<int()>& body);

/// The same of a program that ranks may run: comm::run_program().
int run_ranks_program(const std::function<int(comm::MpiEnvironment&)>& body, const std::string& interface = {});

}  // namespace tandem::apps
