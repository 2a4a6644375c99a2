// Finding programs, and completing what is typed.
#include "commands.h"

#include "apps/arguments/help_layout.h"
#include "tandem/core/error.h"
#include "tandem/core/suggest.h"

#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>

extern char** environ;

namespace tandem::apps {
namespace {

namespace fs = std::filesystem;

constexpr Command kCommands[] = {
    {"train", "cifar_train", "train a network on images; with mpirun on several ranks"},
    {"report", "tandem_report", "make a run's report again, or compare several runs"},
    {"predict", "tandem_predict", "classify image files with the weights of a run"},
    {"data", "tandem_data", "get CIFAR-10, CIFAR-100, MNIST or Fashion-MNIST"},
    {"bench-conv", "conv_bench", "time convolutions, against cuDNN and oneDNN where they are there"},
    {"bench-train", "train_bench", "time whole training steps"},
    {"bench-comm", "allreduce_bench", "time collectives, backend beside backend; with mpirun"},
    {"lab", "sgd_lab", "learn synchronous SGD: a step in detail, and what breaks without a part of it"},
    {"study", "study", "run the experiments of a course over seeds, and report what they say"},
    {"doctor", "tandem_doctor", "tell whether this machine can train, and what to do where it cannot"},
    {"devices", "device_query", "list what this build can compute on"},
};

bool is_program(const fs::path& path) {
  std::error_code unknown;
  return fs::is_regular_file(path, unknown) && access(path.c_str(), X_OK) == 0;
}

bool begins_option(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

/// What stands between separators, without blanks around it; only what can be the name of a value.
std::vector<std::string> words_in(std::string_view text, char separator) {
  std::vector<std::string> words;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const std::size_t begin = word.find_first_not_of(": \n");
    if (begin == word.npos) continue;
    word = word.substr(begin, word.find_last_not_of(" \n") + 1 - begin);
    const bool is_name = std::ranges::all_of(word, [](char c) { return begins_option(c) || c == '_'; });
    if (is_name) words.emplace_back(word);
  }
  return words;
}

/// The part of `words` that begins with the last of them.
std::vector<std::string> matching(const std::vector<std::string>& words, const std::string& begun) {
  std::vector<std::string> found;
  std::copy_if(words.begin(), words.end(), std::back_inserter(found),
               [&](const std::string& word) { return word.starts_with(begun); });
  return found;
}

// The scripts. A program by its own name is completed as its command is; {0} is all names.
constexpr std::string_view kBash = R"(# source <(tandem completion bash)
_tandem() {{
  local program=${{COMP_WORDS[0]}} tandem=tandem words=("${{COMP_WORDS[@]:1:COMP_CWORD}}")
  case $program in */*) tandem=${{program%/*}}/tandem ;; esac
  [ "${{program##*/}}" = tandem ] || words=("${{program##*/}}" "${{words[@]}}")
  mapfile -t COMPREPLY < <("$tandem" --complete "${{words[@]}}" 2>/dev/null)
}}
complete -o default -F _tandem {0}
)";
constexpr std::string_view kZsh = R"(#compdef {0}
# source <(tandem completion zsh), or as the file _tandem in a folder of fpath
_tandem() {{
  local program=${{words[1]}} tandem=tandem
  local -a found asked
  [[ $program == */* ]] && tandem=${{program%/*}}/tandem
  asked=("${{(@)words[2,CURRENT]}}")
  [[ ${{program##*/}} == tandem ]] || asked=("${{program##*/}}" "${{asked[@]}}")
  found=("${{(@f)$("$tandem" --complete "${{asked[@]}}" 2>/dev/null)}}")
  if [[ -n ${{found[1]}} ]]; then compadd -- "${{found[@]}}"; else _files; fi
}}
if [[ ${{funcstack[1]}} == _tandem ]]; then _tandem "$@"; else compdef _tandem {0}; fi
)";
constexpr std::string_view kFish = R"(# tandem completion fish | source
function __tandem_complete
  set -l words (commandline -opc)
  set -l program (string replace -r '.*/' '' -- $words[1])
  set -l tandem (string replace -r '[^/]*$' tandem -- $words[1])
  test $program = tandem; and set program
  $tandem --complete $program $words[2..] (commandline -ct) 2>/dev/null
end
for program in {0}
  complete -c $program -a '(__tandem_complete)'
end
)";

}  // namespace

std::span<const Command> commands() { return kCommands; }

const Command& find_command(std::string_view name) {
  const auto* const found = std::ranges::find(kCommands, name, &Command::name);
  if (found != std::end(kCommands)) return *found;
  const auto* const program = std::ranges::find(kCommands, name, &Command::program);  // by its other name
  if (program != std::end(kCommands)) return *program;
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.emplace_back(command.name);
  fail("{}", unknown_name("command", name, names));
}

std::string find_program(const Command& command) {
  std::error_code unknown;
  const fs::path beside = fs::read_symlink("/proc/self/exe", unknown).parent_path() / command.program;
  if (!unknown && is_program(beside)) return beside.string();
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    const fs::path candidate = fs::path(folder) / command.program;
    if (!folder.empty() && is_program(candidate)) return candidate.string();
  }
  fail("tandem {}: its program {} is neither beside this one nor on the PATH: was it built and installed?",
       command.name, command.program);
}

std::string help_page() {
  const int columns = help_columns();
  std::string text = "usage: tandem COMMAND [options]\n\n" +
                     help_paragraph("A small, fast trainer of image networks, and what goes with it.", columns) +
                     "\nCommands:\n";
  const auto add = [&](std::string_view name, std::string_view what) {
    text += help_entry(std::string(name), std::string(what), columns);
  };
  for (const Command& command : kCommands) add(command.name, command.what);
  add("completion", "print a script that completes commands: bash, zsh or fish");
  add("help", "tell what a command takes: tandem help train");
  return text + "\n" +
         help_paragraph(
             "Each command is a program of its own, and takes the same options by its own name: mpirun -np 2 "
             "cifar_train is mpirun -np 2 tandem train.",
             columns);
}

std::string help_of(const Command& command) {
  const std::string program = find_program(command);
  std::array<int, 2> ends{};
  require(pipe(ends.data()) == 0, "tandem: no pipe: {}", std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::string name(command.program), option = "--help";
  std::array<char*, 3> arguments{name.data(), option.data(), nullptr};
  std::string wide = "COLUMNS=80";  // a narrower page breaks what values_in() reads
  std::vector<char*> variables{wide.data()};
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with("COLUMNS=")) variables.push_back(*variable);
  variables.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t size = 0; error == 0 && (size = read(ends[0], part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(size));
  close(ends[0]);
  require(error == 0, "tandem: cannot run {}: {}", program, std::strerror(error));
  waitpid(child, nullptr, 0);
  return text;
}

std::vector<std::string> options_in(std::string_view help) {
  std::vector<std::string> options;
  for (std::size_t at = 0; (at = help.find("--", at)) != help.npos;) {
    const std::size_t begin = at;
    const bool at_start = begin == 0 || help[begin - 1] == ' ' || help[begin - 1] == ',' || help[begin - 1] == '\n';
    while (at < help.size() && begins_option(help[at])) ++at;
    std::string option(help.substr(begin, at - begin));
    if (at_start && option.size() > 2 && std::ranges::find(options, option) == options.end())
      options.push_back(std::move(option));
  }
  return options;
}

std::vector<std::string> values_in(std::string_view help, std::string_view option) {
  const std::string start = fmt::format("\n  {} ", option);  // where an option has its own line
  const std::size_t at = help.find(start);
  if (at == help.npos) return {};
  std::string_view text = help.substr(at + start.size());
  text = text.substr(0, std::min(text.find("\n  -"), text.find("\n\n")));
  const std::string_view first = text.substr(0, text.find_first_of(" \n"));
  if (first.find('|') != first.npos) return words_in(first, '|');
  // "NAME   what it is: one, two, three [one]"
  if (first != "NAME" || text.rfind(": ") == text.npos) return {};
  text = text.substr(0, text.rfind(" ["));
  return words_in(text.substr(std::min(text.rfind(": "), text.size())), ',');
}

std::vector<std::string> complete(const std::vector<std::string>& words) {
  const std::string begun = words.empty() ? "" : words.back();
  if (words.size() <= 1) {
    std::vector<std::string> names{"completion", "help"};
    for (const Command& command : kCommands) names.emplace_back(command.name);
    std::ranges::sort(names);
    return matching(names, begun);
  }
  if (words.front() == "completion") return matching({"bash", "fish", "zsh"}, begun);
  if (words.front() == "help") return words.size() == 2 ? complete({begun}) : std::vector<std::string>();
  const auto* const command = std::ranges::find_if(
      kCommands, [&](const Command& c) { return c.name == words.front() || c.program == words.front(); });
  if (command == std::end(kCommands)) return {};
  const std::string help = help_of(*command);
  if (begun.starts_with('-')) return matching(options_in(help), begun);
  std::string before = words[words.size() - 2], value = begun;
  if (begun == "=") value.clear();  // bash makes three words of --option=value
  if (before == "=" && words.size() > 2) before = words[words.size() - 3];
  return matching(values_in(help, before), value);
}

std::string completion_script(std::string_view shell) {
  std::string programs = "tandem";
  for (const Command& command : kCommands) programs += fmt::format(" {}", command.program);
  if (shell == "bash") return fmt::format(kBash, programs);
  if (shell == "zsh") return fmt::format(kZsh, programs);
  if (shell == "fish") return fmt::format(kFish, programs);
  fail("{}", unknown_name("shell", shell, std::vector<std::string_view>{"bash", "zsh", "fish"}));
}

}  // namespace tandem::apps
