// The last words of a rank.
#include "tandem/comm/doctor/end_process.h"

#include "tandem/comm/doctor/watched_backend.h"

#include <fmt/format.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>

namespace tandem::comm {

namespace {

struct SavedPath {
  std::mutex mutex;
  std::string path;
};

SavedPath& saved_path() {
  static SavedPath& path = *new SavedPath;  // never destroyed: watchdogs may end later
  return path;
}

std::string path_to_save() {
  SavedPath& saved = saved_path();
  const std::scoped_lock lock(saved.mutex);
  return saved.path;
}

/// Not by stdio, whose locks another thread may hold for ever.
void write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

bool cannot_end_itself(const RankView& rank) {
  return !rank.is_far && (rank.state == ProcessState::stopped || rank.state == ProcessState::held);
}

/// Whether all ranks of this host that can have told what they know.
bool have_all_told(const StatusBoard& board) {
  return std::ranges::all_of(board.look_here(), [&](const RankView& rank) {
    const RankStatus& status = board.statuses()[static_cast<std::size_t>(rank.rank)];
    return rank.end != RankEnd::none || rank.state == ProcessState::ended || cannot_end_itself(rank) ||
           status.has_told.load(std::memory_order_acquire) != 0;
  });
}

/// Writes a text to stderr behind "error: rank R: ", and lets the watchdogs of other ranks know.
void tell(StatusBoard& board, const std::string& text) {
  board.mine().has_found_fault.store(1, std::memory_order_release);
  write_to_stderr(fmt::format("error: rank {}: {}", board.place().rank, text));
  board.mine().has_told.store(1, std::memory_order_release);
}

}  // namespace

void save_statuses_to(const std::string& path) {
  SavedPath& saved = saved_path();
  const std::scoped_lock lock(saved.mutex);
  saved.path = path;
}

void end_process(StatusBoard& board, const GroupView& group, const Diagnosis& diagnosis, const LastWords& words) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kForOthers{1500}, kBetweenLooks{20};
  constexpr std::chrono::seconds kForLauncher{3}, kForAll{6};
  if (!board.claim_end()) {
    std::this_thread::sleep_for(kForAll);
    _exit(2);
  }
  // Any of this may wait for ever: for who reads stderr, for a disk, or for a lock of a library.
  try {
    std::thread([kForAll] {
      std::this_thread::sleep_for(kForAll);
      _exit(2);
    }).detach();
  } catch (const std::system_error&) {  // no thread is left for that
  }
  std::string all = words.text;
  if (const std::string path = path_to_save(); words.is_teller && !path.empty() && board.save(path))
    all += fmt::format("  what all ranks were doing: tandem_doctor {}\n", path);
  tell(board, all);
  const Clock::time_point begin = Clock::now();
  while (!have_all_told(board) && Clock::now() - begin < kForOthers) std::this_thread::sleep_for(kBetweenLooks);
  for (const int rank : diagnosis.blamed) {
    const RankView& blamed = group.ranks[static_cast<std::size_t>(rank)];
    if (cannot_end_itself(blamed) && blamed.process != getpid()) kill(static_cast<pid_t>(blamed.process), SIGKILL);
  }
  if (words.end_all) {
    if (words.is_teller) words.end_all();
    std::this_thread::sleep_for(kForLauncher);
  }
  _exit(2);
}

}  // namespace tandem::comm
