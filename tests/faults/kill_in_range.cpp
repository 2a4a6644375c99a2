// Kills its process at the beginning of a profiler range: what cifar_train_to_kill is linked with beside cifar_train's
// own parts. TANDEM_TEST_KILL=RANGE:STEPS:COUNT[:RANK] names the COUNT-th range whose name begins with RANGE behind
// STEPS optimizer steps of this process, on this rank (0 unless given). TANDEM_TEST_KILL_LOG=FILE gets a line in the
// moment before.
#include "tandem/core/range_observer.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Target {
  std::string range;
  int steps = 0, count = 0;
};

Target target;
std::atomic<int> steps_begun{0}, entries{0};

std::string text_of(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Of the launchers of Open MPI and MPICH.
std::string rank() {
  for (const char* const name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    if (const std::string value = text_of(name); !value.empty()) return value;
  }
  return "0";
}

void kill_now(const std::string& name) {
  const std::string line = "killed in " + name + "\n";
  const int log = ::open(text_of("TANDEM_TEST_KILL_LOG").c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (log >= 0 && ::write(log, line.data(), line.size()) < 0) ::close(log);
  ::kill(::getpid(), SIGKILL);
}

void observe(const std::string& name) {
  const int begun = steps_begun;
  if (begun >= target.steps && name.starts_with(target.range) && ++entries == target.count) kill_now(name);
  if (name == "optimizer step") ++steps_begun;
}

[[maybe_unused]] const bool is_armed = [] {
  std::vector<std::string> words;
  std::istringstream text(text_of("TANDEM_TEST_KILL"));
  for (std::string word; std::getline(text, word, ':');) words.push_back(word);
  if (words.size() < 3 || (words.size() > 3 ? words[3] : "0") != rank()) return false;
  target = {words[0], std::atoi(words[1].c_str()), std::atoi(words[2].c_str())};
  tandem::detail::observe_ranges(observe);
  return true;
}();

}  // namespace
