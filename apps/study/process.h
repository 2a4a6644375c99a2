// Another program, whose output goes to a file, until it ends, runs out of time, or this program is stopped.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace tandem::study {

enum class ProcessEnd : std::uint8_t { exited, ran_out_of_time, stopped };

struct ProcessResult {
  ProcessEnd end = ProcessEnd::exited;
  int exit_code = 0;  ///< 128 + N where signal N ended it
  double seconds = 0.0;
};

/// Runs words[0], looked up on the PATH, and has it write both of its streams to `output`, behind what is there. Where
/// the limit is over, or `stop` returns true (it is asked 20 times a second), it and what it started get SIGTERM, and
/// after 20 seconds SIGKILL. It gets SIGTERM where this program is killed, too. Open
/// MPI is told that ranks may be more than cores, unless the environment says otherwise. Throws Error where the file
/// cannot be written or the program cannot be started.
ProcessResult run_process(const std::vector<std::string>& words, const std::string& output,
                          std::chrono::duration<double> limit, const std::function<bool()>& stop);

}  // namespace tandem::study
