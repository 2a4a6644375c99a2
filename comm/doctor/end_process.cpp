// The last words of a rank.
#include "tandem/comm/doctor/end_process.h"

#include "tandem/comm/doctor/watched_backend.h"

#include <fmt/format.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

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

struct OwnBoards {
  std::mutex mutex;
  std::vector<std::weak_ptr<StatusBoard>> all;
  std::set<int> ending;  // ranks
};

OwnBoards& own_boards() {
  static OwnBoards& boards = *new OwnBoards;  // never destroyed
  return boards;
}

/// `board`, and those of other groups that its rank is in, as those of threads may be in one process.
std::vector<std::shared_ptr<StatusBoard>> boards_of_rank(StatusBoard& board) {
  OwnBoards& own = own_boards();
  const std::scoped_lock lock(own.mutex);
  std::vector<std::shared_ptr<StatusBoard>> boards{{std::shared_ptr<void>(), &board}};
  for (const auto& each : own.all)
    if (auto other = each.lock(); other && other.get() != &board &&
                                  other->mine().whole_rank == board.mine().whole_rank &&
                                  other->mine().end.load(std::memory_order_acquire) == RankEnd::none)
      boards.push_back(std::move(other));
  return boards;
}

/// True for the first thread of this rank that asks: the one that tells what is wrong, and ends the process.
bool claim_end(StatusBoard& board) {
  OwnBoards& own = own_boards();
  const std::scoped_lock lock(own.mutex);
  return own.ending.insert(board.mine().whole_rank).second;
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
void tell(const std::vector<std::shared_ptr<StatusBoard>>& boards, const std::string& text) {
  for (const auto& board : boards) board->mine().has_found_fault.store(1, std::memory_order_release);
  write_to_stderr(fmt::format("error: rank {}: {}", boards.front()->mine().whole_rank, text));
  for (const auto& board : boards) board->mine().has_told.store(1, std::memory_order_release);
}

}  // namespace

void save_statuses_to(const std::string& path) {
  SavedPath& saved = saved_path();
  const std::scoped_lock lock(saved.mutex);
  saved.path = path;
}

void follow_for_end(const std::shared_ptr<StatusBoard>& board) {
  OwnBoards& own = own_boards();
  const std::scoped_lock lock(own.mutex);
  std::erase_if(own.all, [](const auto& other) { return other.expired(); });
  own.all.push_back(board);
}

bool tells_all(StatusBoard& board) {
  return std::ranges::any_of(boards_of_rank(board),
                             [](const auto& each) { return is_teller(each->look(), each->place().rank); });
}

void end_process(StatusBoard& board, const GroupView& group, const Diagnosis& diagnosis, const LastWords& words) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kForOthers{1500}, kBetweenLooks{20};
  constexpr std::chrono::seconds kForLauncher{3}, kForAll{6};
  if (!claim_end(board)) {
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
  const std::vector<std::shared_ptr<StatusBoard>> boards = boards_of_rank(board);
  tell(boards, all);
  const auto have_told = [&] {
    return std::ranges::all_of(boards, [](const auto& each) { return have_all_told(*each); });
  };
  const Clock::time_point begin = Clock::now();
  while (!have_told() && Clock::now() - begin < kForOthers) std::this_thread::sleep_for(kBetweenLooks);
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
