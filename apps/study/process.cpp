// fork rather than posix_spawn: the child asks to be told of its parent's death.
#include "apps/study/process.h"

#include "tandem/core/error.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace tandem::study {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLook = std::chrono::milliseconds(50);
constexpr auto kGrace = std::chrono::seconds(20);

/// In the child: becomes the program, or writes the number of the error to `problem`.
[[noreturn]] void become(char* const* arguments, int output, int problem, pid_t parent) {
  ::setpgid(0, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGXFSZ, SIGPIPE}) ::signal(signal, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);  // it died before
  // More ranks than cores are a part of some studies: Open MPI 4 and 5 start them where they are told so.
  ::setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
  ::setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execvp(arguments[0], arguments);
  const int error = errno;
  static_cast<void>(!::write(problem, &error, sizeof error));
  ::_exit(127);
}

pid_t start(const std::vector<std::string>& words, int output) {
  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<int, 2> ends{};
  require(::pipe2(ends.data(), O_CLOEXEC) == 0, "no pipe: {}", std::strerror(errno));
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) become(arguments.data(), output, ends[1], parent);
  const int error = errno;
  ::close(ends[1]);
  int problem = child < 0 ? error : 0;
  while (child > 0 && ::read(ends[0], &problem, sizeof problem) < 0 && errno == EINTR) continue;
  ::close(ends[0]);
  if (child > 0 && problem != 0) ::waitpid(child, nullptr, 0);
  require(problem == 0, "cannot run {}: {}", words.front(), std::strerror(problem));
  ::setpgid(child, child);  // here as well, so that it is done when this returns
  return child;
}

/// Whether it has ended, and how.
bool has_ended(pid_t child, int& status) {
  const pid_t got = ::waitpid(child, &status, WNOHANG);
  return got == child || (got < 0 && errno != EINTR);
}

/// Ends it and its process group; returns its status.
int end(pid_t child) {
  ::kill(-child, SIGTERM);
  int status = 0;
  for (const auto since = Clock::now(); Clock::now() - since < kGrace; std::this_thread::sleep_for(kLook))
    if (has_ended(child, status)) break;
  ::kill(-child, SIGKILL);  // what it started and left behind, too
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& words, const std::string& output,
                          std::chrono::duration<double> limit, const std::function<bool()>& stop) {
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  require(file >= 0, "{}: cannot write: {}", output, std::strerror(errno));
  const auto begin = Clock::now();
  pid_t child = 0;
  try {
    child = start(words, file);
  } catch (...) {
    ::close(file);
    throw;
  }
  ::close(file);
  ProcessResult result;
  int status = 0;
  while (!has_ended(child, status)) {
    const bool is_late = Clock::now() - begin > limit, is_stopped = stop();
    if (is_late || is_stopped) {
      result.end = is_stopped ? ProcessEnd::stopped : ProcessEnd::ran_out_of_time;
      status = end(child);
      break;
    }
    std::this_thread::sleep_for(kLook);
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace tandem::study
