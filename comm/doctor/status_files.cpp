// Statuses of other processes: from a file, and by way of /proc/PID/fd.
#include "tandem/comm/doctor/status_board.h"
#include "tandem/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <system_error>

namespace tandem::comm {

namespace {

namespace fs = std::filesystem;

/// A look at a copy of the bytes of a file.
GroupView look_at(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  require(static_cast<bool>(file), "cannot read {}", path);
  // Nobody has as many ranks.
  constexpr std::size_t kMost = std::size_t{1} << 26;
  std::string bytes;
  constexpr std::size_t kPart = std::size_t{1} << 16;
  for (std::string part(kPart, '\0'); file && bytes.size() < kMost;) {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    bytes.append(part, 0, static_cast<std::size_t>(file.gcount()));
  }
  const std::size_t ranks = bytes.size() / sizeof(RankStatus);
  require(ranks > 0 && bytes.size() % sizeof(RankStatus) == 0,
          "{}: {} bytes are not what ranks show of themselves; give the number of a rank's process, or the file that a "
          "run has left when it hung",
          path, bytes.size());
  const auto copy = std::make_unique<RankStatus[]>(ranks);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(copy.get()));
  const std::span<const RankStatus> statuses(copy.get(), ranks);
  require(std::ranges::any_of(statuses, [](const RankStatus& status) { return status.magic == RankStatus::kMagic; }),
          "{}: not what ranks of this version show of themselves", path);
  return view_of(statuses, steady_nanoseconds());
}

}  // namespace

GroupView view_of_file(const std::string& path) { return look_at(path); }

std::vector<GroupView> views_of_process(std::int64_t process) {
  const std::string folder = fmt::format("/proc/{}/fd", process);
  std::error_code error;
  fs::directory_iterator files(folder, error);
  require(!error, "process {}: {}; give the number of a rank's process, which runs as this user on this host", process,
          error.message());
  const std::string name = fmt::format("/memfd:{} ", StatusBoard::kFileName);
  std::vector<std::pair<int, std::string>> found;  // by number: in the order in which they were opened
  for (; !error && files != fs::directory_iterator(); files.increment(error)) {
    const std::string file = files->path().string();
    std::error_code closed;  // since
    const fs::path target = fs::read_symlink(file, closed);
    if (!closed && target.string().starts_with(name))
      found.emplace_back(std::stoi(files->path().filename().string()), file);
  }
  require(!found.empty(),
          "process {}: is no rank of a run of several ranks, or the run has not begun; mpirun itself is none", process);
  std::ranges::sort(found);
  std::vector<GroupView> views;
  std::exception_ptr obstacle;
  for (const auto& [number, path] : found) {
    try {
      views.push_back(look_at(path));
    } catch (const Error&) {  // of groups that have just ended, or just begun, nothing is to be seen
      obstacle = std::current_exception();
    }
  }
  if (views.empty()) std::rethrow_exception(obstacle);
  return views;
}

}  // namespace tandem::comm
