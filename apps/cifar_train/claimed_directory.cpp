// mkdir() is what makes a name one's own, flock() what keeps it.
#include "claimed_directory.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/long_work.h"
#include "tandem/core/error.h"
#include "tandem/core/number_text.h"
#include "tandem/layers/file.h"
#include "tandem/train/checkpoint/checkpoint.h"
#include "tandem/train/environment_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <ranges>
#include <system_error>
#include <tuple>
#include <utility>

namespace tandem::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRuns = "runs";

/// Of this machine's time zone, as 2026-01-31.
std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char text[16];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts));
}

/// Date and number of a folder's name; nothing where make_run_directory() did not make it for this model.
std::optional<std::pair<std::string, std::int64_t>> parts_of(const std::string& name, const std::string& model) {
  constexpr std::size_t kDate = 10;
  const std::string middle = "-" + model + "-";
  if (name.size() <= kDate + middle.size() || name.compare(kDate, middle.size(), middle) != 0) return std::nullopt;
  const auto number = parse_number<std::int64_t>(name.substr(kDate + middle.size()));
  if (!number) return std::nullopt;
  return std::pair(name.substr(0, kDate), *number);
}

/// 0, or why it was not made, EEXIST among others.
int make_folder(const std::string& path) { return ::mkdir(path.c_str(), 0777) == 0 ? 0 : errno; }

/// Those that are empty, from the innermost.
void remove_folders(const std::vector<std::string>& made) {
  for (const std::string& folder : std::views::reverse(made)) ::rmdir(folder.c_str());
}

/// Makes a folder, and those above it that are missing: all or none. Those that it has made, from the outermost.
std::vector<std::string> make_folders(const std::string& path, std::error_code& error) {
  std::vector<std::string> made;
  std::error_code ignored;
  fs::path folder;
  for (const fs::path& name : fs::path(path)) {
    folder /= name;
    if (name.empty() || fs::is_directory(folder, ignored)) continue;
    const int reason = make_folder(folder.string());
    if (reason == 0) made.push_back(folder.string());
    if (reason == 0 || fs::is_directory(folder, ignored)) continue;
    error.assign(reason == EEXIST ? ENOTDIR : reason, std::generic_category());
    remove_folders(made);
    return {};
  }
  return made;
}

}  // namespace

ClaimedDirectory::ClaimedDirectory(std::string path, std::vector<std::string> made)
    : path_(std::move(path)), made_(std::move(made)) {
  hold();
  layers::remove_abandoned_files(path_);
}

void ClaimedDirectory::hold() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat status{};
  if (descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
  // Some file systems know no locks: runs there are not kept apart.
  if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(std::exchange(descriptor_, -1));
  fail("--run-dir {}: another run is writing there: name another folder, or wait for its end", path_);
}

bool ClaimedDirectory::make_again() {
  if (path_.empty() || inode_ == 0) return false;
  struct stat status{};
  if (::stat(path_.c_str(), &status) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return false;  // what happened is not known
  } else if (status.st_dev == device_ && status.st_ino == inode_) {
    return false;
  }
  std::error_code error;
  fs::create_directories(path_, error);
  require(!error, "--run-dir {}: was removed, and cannot be made again: {}", path_, error.message());
  hold();
  return true;
}

ClaimedDirectory::~ClaimedDirectory() {
  if (is_new()) ::rmdir((path_ + "/checkpoints").c_str());
  remove_folders(made_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

ClaimedDirectory::ClaimedDirectory(ClaimedDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      made_(std::exchange(other.made_, {})),
      device_(other.device_),
      inode_(other.inode_) {}

ClaimedDirectory& ClaimedDirectory::operator=(ClaimedDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(made_, other.made_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

ClaimedDirectory make_run_directory(const std::string& runs, const std::string& model) {
  constexpr int kMostTries = 100;  // to make a folder in `runs`, which another process may have made and given up
  std::vector<std::string> made;
  const auto require_made = [&made](int reason, const std::string& path) {
    if (reason != 0 && reason != EEXIST) remove_folders(made);
    require(reason == 0 || reason == EEXIST,
            "{}: cannot make this folder for the run: {}; name another one by --run-dir, or give --no-run-dir to keep "
            "nothing",
            path, std::generic_category().message(reason));
    return reason == 0;
  };
  const std::string beginning = (fs::path(runs) / fmt::format("{}-{}-", today(), model)).string();
  int tries = 0;
  for (std::int64_t number = 1;;) {
    if (require_made(make_folder(runs), runs) && made.empty()) made = {runs};
    std::string path = beginning + std::to_string(number);
    const int reason = make_folder(path);
    if (reason == ENOENT && ++tries < kMostTries) continue;
    if (require_made(reason, path)) {
      made.push_back(path);
      return ClaimedDirectory(std::move(path), std::move(made));
    }
    ++number;
  }
}

ClaimedDirectory unfinished_run_directory(const std::string& runs, const std::string& model,
                                          const std::string& dataset) {
  std::vector<std::tuple<std::string, std::int64_t, std::string>> candidates;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(runs, unreadable)) {
    const auto parts = parts_of(entry.path().filename().string(), model);
    if (parts) candidates.emplace_back(parts->first, parts->second, entry.path().string());
  }
  std::ranges::sort(candidates, std::greater<>());
  for (const auto& [date, number, path] : candidates) {
    const fs::path folder = path;
    const auto run = train::read_run_status((folder / "environment.json").string());
    if (!run || run->state == train::RunState::finished || run->dataset != dataset) continue;
    if (train::CheckpointFolder((folder / "checkpoints").string()).steps().empty()) continue;
    try {
      return ClaimedDirectory(path, {});
    } catch (const Error&) {  // that run is in work
      continue;
    }
  }
  return {};
}

ClaimedDirectory settle_run_directory(Settings& s, comm::ProcessGroup& group) {
  ClaimedDirectory claimed;
  comm::run_agreed(group, [&] {
    if (group.rank() != 0 || s.run_dir_choice == kNoRunDirectory) return;
    const comm::LongWork slow_disk;
    std::error_code none;
    if (!s.run_dir.empty()) {
      std::vector<std::string> made = make_folders(s.run_dir, none);
      require(!none, "--run-dir {}: cannot make this folder: {}; name another, or keep nothing by --no-run-dir",
              s.run_dir, none.message());
      claimed = ClaimedDirectory(s.run_dir, std::move(made));
      return;
    }
    if (s.resume == "auto") claimed = unfinished_run_directory(kRuns, s.model.name, s.data.name);
    if (claimed.path().empty()) claimed = make_run_directory(kRuns, s.model.name);
  });
  s.run_dir = group.all_gather_bytes(claimed.path()).front();
  fill_run_directory(s);
  return claimed;
}

}  // namespace tandem::apps
