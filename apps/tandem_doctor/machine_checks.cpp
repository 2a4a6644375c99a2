// Cores, memory, disks.
#include "checks.h"
#include "group_limits.h"

#include "tandem/comm/launch/threads.h"
#include "tandem/core/memory.h"
#include "tandem/core/parallel.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <thread>

namespace tandem::apps::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
/// Below the first a run is likely to fail, below the second a long one may. A choice: small networks on small images
/// take some hundred MiB a rank, and checkpoints of larger ones as much on the disk.
constexpr std::int64_t kTooLittle = 256 * kMiB, kLittle = 1024 * kMiB;

State state_of(std::int64_t bytes) {
  return bytes < kTooLittle ? State::fault : bytes < kLittle ? State::note : State::ok;
}

Finding check_disk(const fs::path& folder) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error)
    return {State::fault, "disk", fmt::format("{}: {}", folder.string(), error.message()),
            "start from a folder that can be read"};
  const auto free = static_cast<std::int64_t>(std::min<std::uintmax_t>(space.available, INT64_MAX));
  return {state_of(free), "disk",
          fmt::format("{} free in {}", format_memory(free), fs::canonical(folder, error).string()),
          state_of(free) == State::ok
              ? ""
              : "remove what is not needed (old folders in runs/), or name another disk by --run-dir"};
}

Finding check_runs(const fs::path& folder) {
  const fs::path runs = folder / "runs";
  std::error_code unknown;
  const bool is_there = fs::exists(runs, unknown);
  if (is_there && !fs::is_directory(runs, unknown))
    return {State::fault, "runs/", "is a file: no run can be kept there",
            "move it away, or name a folder by --run-dir"};
  const std::string problem = write_problem(is_there ? runs : folder);
  if (problem.empty()) return {State::ok, "runs/", is_there ? "can be written" : "can be made here by the first run"};
  return {State::fault, "runs/", fmt::format("cannot be written: {}", problem),
          "start from a folder of yours, name one by --run-dir, or keep nothing by --no-run-dir"};
}

/// Messages between ranks of one host go through it.
Finding check_shared_memory() {
  const fs::path folder = "/dev/shm";
  if (const std::string problem = write_problem(folder); !problem.empty())
    return {State::fault, "/dev/shm", fmt::format("cannot be written: {}", problem),
            "ranks of one host exchange messages there: mount it (mount -t tmpfs tmpfs /dev/shm), and let all write"};
  std::error_code unknown;
  const auto free = static_cast<std::int64_t>(fs::space(folder, unknown).available);
  if (free < 64 * kMiB)
    return {State::note, "/dev/shm", fmt::format("{} free: ranks of one host may not start", format_memory(free)),
            "remove what programs that crashed left there; in a container, give it more (--shm-size 1g)"};
  return {State::ok, "/dev/shm", fmt::format("can be written, {} free", format_memory(free))};
}

/// The limits of files (ulimit -f), where there is one.
std::vector<Finding> check_file_sizes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  const auto bytes = static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
  return {{state_of(bytes), "file sizes", fmt::format("limited to {}", format_memory(bytes)),
           "checkpoints of larger networks will not fit: ulimit -f unlimited"}};
}

/// Threads that the environment asks for, against cores, and what a container allows.
Finding judge_threads(int threads, int asked, int cores, const GroupLimits& limits) {
  const std::string text =
      fmt::format("{} core{} may be used, one rank starts {} thread{}{}", cores, cores == 1 ? "" : "s", threads,
                  threads == 1 ? "" : "s", asked > 0 ? " (OMP_NUM_THREADS)" : "");
  if (limits.cores && *limits.cores + 0.01 < threads) {
    const int fitting = std::max(1, static_cast<int>(std::floor(*limits.cores + 0.01)));
    return {State::note, "threads",
            fmt::format("{}, but the control group allows the time of {:.2g} cores: threads would be stopped again "
                        "and again",
                        text, *limits.cores),
            fmt::format("--threads {}, or OMP_NUM_THREADS={}, divided by the number of ranks", fitting, fitting)};
  }
  if (asked > cores)
    return {State::note, "threads", fmt::format("{}: they would take turns", text),
            fmt::format("set OMP_NUM_THREADS to {} or less, or unset it", cores)};
  if (asked > 0 && asked < cores)
    return {State::note, "threads", fmt::format("{}: the other cores stay idle", text),
            "unset OMP_NUM_THREADS for a fair share of the cores, or start more ranks"};
  return {State::ok, "threads", text};
}

}  // namespace

std::vector<Finding> check_cores(const EnvironmentLookup& lookup) {
  const char* const text = lookup("OMP_NUM_THREADS");
  const int asked = threads_asked_for();
  std::vector<Finding> findings;
  if (text != nullptr && *text != '\0' && asked == 0)
    findings.push_back({State::note, "OMP_NUM_THREADS",
                        fmt::format("'{}' is no number above 0, and is passed over", text),
                        "set it to a number of threads, or unset it"});
  const auto allowed = static_cast<int>(comm::allowed_cores().size());
  const int all = static_cast<int>(std::thread::hardware_concurrency());
  const int cores = allowed > 0 ? allowed : std::max(1, all);
  findings.push_back(judge_threads(asked > 0 ? asked : cores, asked, cores, group_limits()));
  return findings;
}

std::vector<Finding> check_memory() {
  const GroupLimits limits = group_limits();
  std::int64_t bytes = available_memory();
  std::string limited;
  if (limits.memory_bytes) {
    const std::int64_t left = std::max<std::int64_t>(1, *limits.memory_bytes - limits.memory_in_use.value_or(0));
    if (bytes == 0 || left < bytes) {
      bytes = left;
      limited = fmt::format(", by the control group's limit of {}", format_memory(*limits.memory_bytes));
    }
  }
  if (bytes == 0) return {};  // the system does not tell
  std::vector<Finding> findings;
  findings.push_back({state_of(bytes), "memory", fmt::format("{} free{}", format_memory(bytes), limited),
                      state_of(bytes) == State::ok
                          ? ""
                          : "end other programs, or give the container more; a smaller --batch-size takes less"});
  for (Finding& finding : check_file_sizes()) findings.push_back(std::move(finding));
  return findings;
}

std::vector<Finding> check_folders(const fs::path& folder) {
  return {check_disk(folder), check_runs(folder), check_shared_memory()};
}

}  // namespace tandem::apps::doctor
