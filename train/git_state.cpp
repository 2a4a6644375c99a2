// git is started directly, without a shell, and told to run no program of the checkout's own.
#include "tandem/train/git_state.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <sstream>
#include <string_view>
#include <vector>

namespace tandem::train {
namespace {

constexpr std::chrono::seconds kPatience{2};

/// What comes out of a pipe until its end; nothing if that takes too long.
std::optional<std::string> read_all(int descriptor) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::string text;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{descriptor, POLLIN, 0};
    const int ready = left.count() > 0 ? ::poll(&waiting, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    std::array<char, 4096> part{};
    const ssize_t got = ::read(descriptor, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

/// Standard output of a program of the PATH; nothing where it cannot be started, fails or takes too long.
std::optional<std::string> output_of(std::vector<std::string> command) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::optional<std::string> text;
  if (error == 0) {
    text = read_all(ends[0]);
    if (!text) ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) text.reset();
  }
  ::close(ends[0]);
  return text;
}

}  // namespace

std::optional<GitState> git_state(const std::string& folder) {
  const auto text = output_of({"git", "-C", folder, "--no-optional-locks", "-c", "core.fsmonitor=false", "status",
                               "--porcelain=v2", "--branch", "--untracked-files=no"});
  if (!text) return std::nullopt;
  GitState state;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kCommit = "# branch.oid ";
    if (line.starts_with(kCommit)) state.commit = line.substr(kCommit.size());
    if (!line.starts_with('#')) state.is_dirty = true;
  }
  if (state.commit == "(initial)") state.commit.clear();
  return state;
}

}  // namespace tandem::train
