// /proc/PID/stat (proc(5)): the state is the third field, the start the 22nd.
#include "tandem/comm/doctor/process_state.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

namespace tandem::comm {

namespace {

struct ProcessStat {
  char state = '?';
  std::int64_t start = 0;
  bool is_gone = false;  // there is no such process
};

/// The text of a file of /proc, which fits; nothing, and errno, where it cannot be read.
std::optional<std::string> text_of_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::array<char, 4096> text;
  const ssize_t length = read(file, text.data(), text.size());
  const int fault = errno;
  close(file);
  errno = fault;
  if (length < 0) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(length));
}

/// Nothing where the system does not say, as when this process has no file descriptor left.
std::optional<ProcessStat> stat_of(std::int64_t process) {
  const std::optional<std::string> line = text_of_file(fmt::format("/proc/{}/stat", process));
  if (!line) return errno == ENOENT || errno == ESRCH ? std::optional(ProcessStat{.is_gone = true}) : std::nullopt;
  const std::size_t name_end = line->rfind(')');  // a program's name may have spaces and brackets
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line->substr(name_end + 1));
  ProcessStat stat;
  fields >> stat.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> stat.start;
  if (!fields) return std::nullopt;
  return stat;
}

bool tells_of_processes() {
  std::error_code error;
  return std::filesystem::exists("/proc/self/stat", error);
}

}  // namespace

ProcessState state_of_process(std::int64_t process, std::int64_t start) {
  const std::optional<ProcessStat> stat = stat_of(process);
  if (!stat) return ProcessState::unknown;
  if (stat->is_gone) return tells_of_processes() ? ProcessState::ended : ProcessState::unknown;
  if (start != 0 && stat->start != start) return ProcessState::ended;
  switch (stat->state) {
    case 'R':
      return ProcessState::runs;
    case 'T':
      return ProcessState::stopped;
    case 't':
      return ProcessState::held;
    case 'Z':
    case 'X':
    case 'x':
      return ProcessState::ended;
    default:
      return ProcessState::sleeps;
  }
}

std::int64_t start_of_process(std::int64_t process) {
  const std::optional<ProcessStat> stat = stat_of(process);
  return stat ? stat->start : 0;
}

std::uint64_t time_namespace() {
  static const std::uint64_t number = [] {
    struct stat status{};
    return stat("/proc/self/ns/time", &status) == 0 ? static_cast<std::uint64_t>(status.st_ino) : 0;
  }();
  return number;
}

}  // namespace tandem::comm
