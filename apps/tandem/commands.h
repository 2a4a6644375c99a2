// The commands of `tandem`: names for the programs beside it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::apps {

struct Command {
  std::string_view name;     ///< "train"
  std::string_view program;  ///< "cifar_train"
  std::string_view what;     ///< for the help page
};

std::span<const Command> commands();

/// Throws Error for an unknown name, suggesting the nearest.
const Command& find_command(std::string_view name);

/// The file of a command's program: beside this one, else on the PATH. Throws Error where it is in neither.
std::string find_program(const Command& command);

std::string help_page();

/// What a command's program prints by --help. Throws Error where it cannot be run.
std::string help_of(const Command& command);

/// The options in a help page, with their dashes, in order and each once.
std::vector<std::string> options_in(std::string_view help);
/// The values that a help page gives an option, as in "--schedule one-cycle|cosine", or in "--schedule NAME", where
/// they end the text behind a colon; none where they are open.
std::vector<std::string> values_in(std::string_view help, std::string_view option);

/// What may follow `words`, the last of which is begun, behind the name of this program.
std::vector<std::string> complete(const std::vector<std::string>& words);

/// A script that makes a shell ask complete(). Throws Error for other shells than bash, zsh and fish.
std::string completion_script(std::string_view shell);

}  // namespace tandem::apps
