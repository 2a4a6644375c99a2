// How much memory a piece of work takes, measured in a process of its own.
#pragma once

#include "tests/support/catch.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <exception>
#include <fstream>
#include <functional>
#include <string>

namespace tandem::test {

inline constexpr std::int64_t kMiB = 1 << 20;

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kMemoryIsMeasured = false;  // the sanitizer's bookkeeping is larger
#else
inline constexpr bool kMemoryIsMeasured = true;
#endif

/// A line of /proc/self/status, in bytes: "VmRSS" is what is resident now, "VmHWM" the most there ever was.
inline std::int64_t status_bytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + ":")) return 1024 * std::stoll(line.substr(key.size() + 1));
  }
  return 0;
}

struct Reading {
  std::int64_t grown = 0;  // bytes of memory beyond what there was, at most
  std::string error;       // or empty
};

/// Calls `work` in a process of its own.
inline Reading read_apart(const std::function<void()>& work) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::int64_t before = status_bytes("VmRSS");
    std::string error;
    try {
      work();
    } catch (const std::exception& caught) {
      error = caught.what();
    }
    const std::string report = fmt::format("{} {}", status_bytes("VmHWM") - before, error.substr(0, 1000));
    _exit(write(ends[1], report.data(), report.size()) == static_cast<ssize_t>(report.size()) ? 0 : 1);
  }
  REQUIRE(child > 0);
  close(ends[1]);
  char text[2000] = {};
  const ssize_t length = read(ends[0], text, sizeof(text) - 1);
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(length > 0);
  REQUIRE(status == 0);
  const std::string report(text);
  const std::size_t space = report.find(' ');
  return {std::stoll(report.substr(0, space)), report.substr(space + 1)};
}

}  // namespace tandem::test
